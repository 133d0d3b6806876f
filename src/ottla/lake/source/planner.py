"""Plans a stream's micro-batches: its start, the end of each batch, and the ranges to read.

It is independent of Spark, and used from one thread.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from ottla.base.errors import OttlaError
from ottla.lake.model.plan import PartitionBounds, offset_bytes
from ottla.lake.source.backlog import admitted, is_enough, log_bytes, waits
from ottla.lake.source.boundaries import assigned, boundaries, chosen, limits_between, offsets_of
from ottla.lake.source.cluster import Cluster, LogPosition, connect, is_outage
from ottla.lake.source.held_back import StandingEnds, held_back
from ottla.lake.source.source_options import StreamOptions, wrong
from ottla.lake.source.stream_offset import (
    Key,
    StreamOffset,
    require_no_truncation,
    require_same_topics,
    suspects,
)
from ottla.lake.source.tasks import TaskRanges, TopicRead, divided, judge_loss

_log = logging.getLogger(__name__)

T = TypeVar("T")

# The brokers are polled at most this often, even if Spark asks more often.
_POLL_S = 0.1
# How long the sizes of logs are cached. The size of an offset is derived from them.
_SIZES_S = 60.0
# Requests are retried this long before the stream reports an outage of brokers or leaders.
_PATIENCE_S = 5.0


class StreamPlanner:
    """Plans the micro-batches of one stream. `positions` are used for the start `last-load`."""

    def __init__(
        self,
        options: StreamOptions,
        positions: Mapping[int, int],
        open_cluster: Callable[[str], Cluster] | None = None,
        now_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._options = options
        self._positions = positions
        self._cluster = (
            connect(options.brokers, _PATIENCE_S)
            if open_cluster is None
            else open_cluster(options.bootstrap)
        )
        self._now_s = now_s
        self._sleep = sleep
        self._asked_s = float("-inf")
        self._admitted_s = float("-inf")
        # For how many micro-batches each partition has waited without a share.
        self._waited: Mapping[Key, int] = {}
        self._target: Mapping[Key, int] | None = None
        self._standing = StandingEnds()
        self._offset_bytes: dict[Key, float] = {}
        self._sized_s = float("-inf")
        self._waits_since_s: float | None = None
        self.newest = StreamOffset()  # The ends that were seen last.

    def close(self) -> None:
        """Close the connection."""
        self._cluster.close()

    def when_reachable(self, ask: Callable[[], T]) -> T:
        """Call `ask` until brokers and leaders answer, and return its result. Waits are logged."""
        while True:
            try:
                found = ask()
            except OttlaError as error:
                self._waits(error)
                self._sleep(_POLL_S)
            else:
                self._goes_on()
                return found

    def initial(self) -> StreamOffset:
        """Return the start of a stream that has no checkpoint."""
        current = self._current()
        starts = boundaries(self._options.start, current.ids)
        places = {}
        for topic in current.ids:
            described = self._cluster.describe(topic)
            described = replace(described, bounds=assigned(topic, described.bounds, self._options))
            offsets = offsets_of(self._cluster, described, starts[topic], self._positions)
            for partition, offset in offsets.items():
                key = Key(topic, partition)
                end = current.places.get(key)
                if end is not None:
                    # The leader epoch of a stored position above the end is unknown.
                    epoch = end.leader_epoch if offset <= end.offset else -1
                    places[key] = LogPosition(offset, epoch)
        return StreamOffset(current.ids, places)

    def fix_target(self) -> None:
        """Stop the stream at the current end of the topics, for the trigger `availableNow`."""
        self._target = {key: end.offset for key, end in self._current().places.items()}

    def latest(self, start: StreamOffset, *, limited: bool) -> StreamOffset:
        """Return the end of the next micro-batch as `ahead` does.

        While brokers or leaders are unavailable, log a line and return `start`; with a fixed
        target, raise the error.
        """
        try:
            after = self.ahead(start, limited=limited)
        except OttlaError as error:
            if self._target is not None:
                raise
            self._waits(error)
            return start
        self._goes_on()
        return after

    def _waits(self, error: OttlaError) -> None:
        """Log an outage once, at its first error. Raise any other error."""
        if not is_outage(error):
            raise error
        if self._waits_since_s is None:
            self._waits_since_s = self._now_s()
            _log.warning("waiting for brokers: %s", error.message)

    def _goes_on(self) -> None:
        if self._waits_since_s is not None:
            waited_s = self._now_s() - self._waits_since_s
            self._waits_since_s = None
            _log.warning("going on: the brokers answer again after %.0f s", waited_s)

    def ahead(self, start: StreamOffset, *, limited: bool) -> StreamOffset:
        """Return the end of the next micro-batch, or `start` itself if there is nothing to read.

        With `limited`, the batch stays within the limits of the options. Raises OttlaError if a
        topic was deleted, recreated or truncated, or while brokers or leaders are unavailable.
        """
        self._sleep(max(0.0, self._asked_s + _POLL_S - self._now_s()))
        self._asked_s = self._now_s()
        current = self.newest = self._current()
        ends = current.places
        self._check(start, current)
        self._report_held_back(ends)
        if self._target is not None:
            ends = {
                key: LogPosition(min(end.offset, self._target[key]), end.leader_epoch)
                for key, end in ends.items()
                if key in self._target
            }
        begins = self._begins(start, ends)
        backlog = {key: max(0, end.offset - begins[key]) for key, end in ends.items()}
        counts = self._admitted(backlog) if limited else backlog
        places = {key: place for key, place in start.places.items() if key.topic in current.ids}
        for key, count in counts.items():
            if count or (key not in places and not backlog[key]):
                places[key] = LogPosition(begins[key] + count, ends[key].leader_epoch)
        if places == start.places:
            return start
        ids = {topic: current.ids[topic] for topic in {key.topic for key in places}}
        return StreamOffset(ids, places)

    def ranges(self, start: StreamOffset, end: StreamOffset) -> list[TaskRanges]:
        """Return tasks for all records between two offsets.

        Raises OttlaError if records between them were deleted, unless the options accept that.
        """
        require_same_topics(start, end.ids)
        reads = []
        for topic in sorted(end.ids):
            moved = {
                key.partition: place.offset
                for key, place in end.places.items()
                if key.topic == topic and start.places.get(key) != place
            }
            if not moved:
                continue
            described = self._cluster.describe(topic)
            require_same_topics(end, {topic: described.topic_id})
            known = {
                p: start.places[Key(topic, p)].offset
                for p in moved
                if Key(topic, p) in start.places
            }
            bounds = {p: described.bounds[p] for p in moved if p in described.bounds}
            starts = {p: known.get(p, min(bounds[p].log_start, moved[p])) for p in bounds}
            limits = limits_between(replace(described, bounds=bounds), starts, moved, known)
            judge_loss(topic, limits.lost, self._options)
            reads.append(TopicRead(described, limits))
        return divided(reads, self._options)

    def _current(self) -> StreamOffset:
        """Return the ends of all partitions to read."""
        names = self._cluster.topic_names() if self._options.topic_pattern else ()
        found = {topic: self._cluster.ends(topic) for topic in chosen(self._options, names)}
        return StreamOffset(
            {topic: one.topic_id for topic, one in found.items()},
            {
                Key(topic, partition): end
                for topic, one in found.items()
                for partition, end in assigned(topic, one.ends, self._options).items()
            },
        )

    def _check(self, start: StreamOffset, current: StreamOffset) -> None:
        """Raise OttlaError if a topic of the stream was deleted, recreated or truncated."""
        require_same_topics(start, current.ids)
        gone = sorted(start.ids.keys() - current.ids.keys())
        if gone and self._options.fail_on_data_loss:
            wrong(
                f"topic {gone[0]}, which the stream has read, does not exist any more. Go on "
                'without it: .option("failOnDataLoss", "false")'
            )
        asked = suspects(start, current.places)
        epoch_ends: dict[Key, int] = {}
        for topic in sorted({key.topic for key in asked}):
            epochs = {key.partition: epoch for key, epoch in asked.items() if key.topic == topic}
            for partition, end in self._cluster.epoch_ends(topic, epochs).items():
                epoch_ends[Key(topic, partition)] = end
        require_no_truncation(start, current, epoch_ends)

    def _begins(self, start: StreamOffset, ends: Mapping[Key, LogPosition]) -> dict[Key, int]:
        """Return each partition's start offset; a new partition starts at its log start offset."""
        begins = {key: start.places[key].offset for key in ends if key in start.places}
        for topic in sorted({key.topic for key in ends if key not in begins}):
            log_starts = self._cluster.log_starts(topic)
            for key, end in ends.items():
                if key.topic == topic and key not in begins:
                    begins[key] = min(log_starts.get(key.partition, 0), end.offset)
        return begins

    def _admitted(self, backlog: Mapping[Key, int]) -> Mapping[Key, int]:
        options = self._options
        if not any(backlog.values()):
            return backlog
        sizes = self._sizes(backlog)
        now_s = self._now_s()
        if (
            self._target is None
            and (now_s - self._admitted_s) * 1000 < options.delay_max_ms
            and not is_enough(backlog, sizes, options.records_min, options.bytes_min)
        ):
            return {}
        self._admitted_s = now_s
        counts = admitted(backlog, sizes, options.records_max, options.bytes_max, self._waited)
        self._waited = waits(self._waited, backlog, counts)
        return counts

    def _sizes(self, backlog: Mapping[Key, int]) -> Mapping[Key, float]:
        """Return the average size in bytes of one offset in each partition's log."""
        options = self._options
        now_s = self._now_s()
        if options.bytes_max is None and options.bytes_min is None:
            return dict.fromkeys(backlog, 1.0)
        if now_s - self._sized_s >= _SIZES_S or not backlog.keys() <= self._offset_bytes.keys():
            self._sized_s = now_s
            topics = sorted({key.topic for key in backlog})
            sizes = log_bytes(options.brokers, topics)
            starts = {topic: self._cluster.log_starts(topic) for topic in topics}
            marks = {topic: self._cluster.high_watermarks(topic) for topic in topics}
            for topic, partition in backlog:
                bounds = PartitionBounds(
                    starts[topic].get(partition, 0), marks[topic].get(partition, 0)
                )
                size = sizes.get(topic, {}).get(partition, 0)
                self._offset_bytes[Key(topic, partition)] = offset_bytes(bounds, size)
        return self._offset_bytes

    def _report_held_back(self, ends: Mapping[Key, LogPosition]) -> None:
        keys = self._standing.to_ask(int(self._now_s() * 1000), ends)
        if not keys:
            return
        try:
            lines = held_back(self._cluster, self._options.brokers, keys, ends)
        except OttlaError:
            return  # This is only a notice. Reading raises errors that matter.
        for line in lines:
            _log.warning("%s", line)
