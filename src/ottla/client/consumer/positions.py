"""Determines positions before a partition can be read.

Needed if the start is only EARLIEST, LATEST or a time, or if a new leader may lack records that
were read.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.common.errors import OffsetOutOfRange
from ottla.client.connection.attempts import Backoff
from ottla.client.connection.background import Background
from ottla.client.connection.cluster import Cluster
from ottla.client.connection.view import NO_LEADER
from ottla.client.consumer.offsets import LATEST, epochs_request, list_offsets
from ottla.client.consumer.partition_state import PartitionState
from ottla.wire.messages.list_offsets import OffsetForLeaderEpochResponse


class LogTruncated(OffsetOutOfRange):
    """Records that were read have been truncated: an unclean election lost them.

    The records read from `offset` on are not in the log any more. Seek to `offset` to continue.
    """

    def __init__(self, partition: TopicPartition, position: int, offset: int) -> None:
        super().__init__(
            f"{partition} was cut by an unclean election: what was read from offset {offset} up "
            f"to {position} is not in its log any more; undo what was made of it and seek to "
            f"{offset}, or let auto_offset_reset be 'earliest' or 'latest' to go on there"
        )
        self.partition = partition
        self.offset = offset


class EpochEnd(NamedTuple):
    """The leader's greatest epoch up to the requested one, and its end offset.

    Both are -1 if the leader knows no such epoch.
    """

    leader_epoch: int
    end_offset: int

    def is_truncated(self, offset: int, leader_epoch: int) -> bool:
        """Whether the leader lacks the record before `offset` that was read in `leader_epoch`."""
        return self.end_offset < offset or self.leader_epoch != leader_epoch

    def parting(self, offset: int) -> int:
        """Return the offset from which records read below `offset` may have been truncated."""
        return max(min(self.end_offset, offset - 1), 0)


async def ends_of_epochs(
    cluster: Cluster, leader: int, wanted: Mapping[TopicPartition, tuple[int, int]]
) -> dict[TopicPartition, EpochEnd]:
    """Ask one leader where leader epochs end in its log.

    `wanted` has per partition the current leader epoch and the epoch to look up.

    Partitions without an answer are left out. Raises ConnectionFailed, RequestTimedOut.
    """
    if leader == NO_LEADER:
        return {}
    request = epochs_request(wanted)
    answer = await cluster.ask(leader, request, OffsetForLeaderEpochResponse)
    return {
        TopicPartition(topic.topic, one.partition): EpochEnd(one.leader_epoch, one.end_offset)
        for topic in answer.topics
        for one in topic.partitions
        if not one.error_code
    }


_log = logging.getLogger(__name__)


class Waiting(Background):
    """The background of a fetcher, which delays single partitions after errors."""

    def __init__(self, cluster: Cluster, backoff: Backoff, pump: Callable[[], None]) -> None:
        super().__init__(cluster, pump)
        self._backoff = backoff

    def delay(self, states: Iterable[PartitionState]) -> None:
        """Do not fetch these partitions for a while, longer after each failure."""
        now_s = asyncio.get_running_loop().time()
        for state in states:
            delay_s = self._backoff.delay_s(state.attempts, self._cluster.chance)
            state.attempts += 1
            state.not_before_s = now_s + delay_s
            self.until(state.not_before_s)


class _EpochCheck(NamedTuple):
    """A position to check: whether a new leader has the record before it (KIP-320)."""

    state: PartitionState
    term: int
    leader_epoch: int
    read_epoch: int


class Positions:
    """Determines the unknown positions of a fetcher.

    `reset_to` is the start of partitions without a position; None makes a missing position an
    error. `on_known` is called once positions are known, `on_failure` with permanent errors.
    """

    def __init__(
        self,
        cluster: Cluster,
        waiting: Waiting,
        reset_to: int | None,
        isolation_level: int,
        *,
        on_known: Callable[[], None],
        on_failure: Callable[[OttlaError, PartitionState | None], None],
    ) -> None:
        self._cluster = cluster
        self._waiting = waiting
        self._reset_to = reset_to
        self._isolation_level = isolation_level
        self._on_known = on_known
        self._on_failure = on_failure

    # -- after a change of the leader

    def check(self, leader: int, states: list[PartitionState]) -> None:
        """Check that a new leader's log contains the records read, before reading more there."""
        epoch_of = self._cluster.view.leader_epoch
        # Copied now, because the program may seek before the request is made.
        asked = [
            _EpochCheck(state, state.term, epoch_of(*state.topic_partition), state.read_epoch)
            for state in states
        ]
        for state in states:
            state.is_checking = True
        self._waiting.run(self._check(leader, asked))

    async def _check(self, leader: int, asked: list[_EpochCheck]) -> None:
        wanted = {
            check.state.topic_partition: (check.leader_epoch, check.read_epoch) for check in asked
        }
        try:
            found = await ends_of_epochs(self._cluster, leader, wanted)
        except OttlaError:
            found = {}
        finally:
            for check in asked:
                check.state.is_checking = False
        for state, term, leader_epoch, read_epoch in asked:
            if state.term != term:
                continue
            end = found.get(state.topic_partition)
            if end is None:
                self._waiting.delay([state])
                self._waiting.refresh()
            elif end.is_truncated(state.fetch_offset, read_epoch):
                self._on_truncated(state, end)
            else:
                state.checked_epoch = leader_epoch
        self._on_known()

    def _on_truncated(self, state: PartitionState, end: EpochEnd) -> None:
        """Go back to the truncation offset; without a reset rule fail with LogTruncated."""
        parting = end.parting(state.fetch_offset)
        if state.position <= parting:
            # The truncated records were prefetched, but not returned.
            state.seek(state.position, end.leader_epoch)
        elif self._reset_to is not None:
            _log.warning(
                "%s was cut by an unclean election: offsets %d to %d were read and are not in "
                "its log any more; reading on from %d",
                state.topic_partition,
                parting,
                state.position - 1,
                parting,
            )
            state.seek(parting, end.leader_epoch)
        else:
            self._on_failure(LogTruncated(state.topic_partition, state.position, parting), state)
            self._waiting.delay([state])

    # -- without a position

    def resolve(self, states: Iterable[PartitionState]) -> None:
        """Determine the unknown positions of partitions that have a start rule."""
        unknown = [
            state
            for state in states
            if state.fetch_offset < 0 and state.reset_to is not None and not state.is_resolving
        ]
        if unknown:
            for state in unknown:
                state.is_resolving = True
            self._waiting.run(self._resolve(unknown))

    async def _resolve(self, states: list[PartitionState]) -> None:
        asked = [(state, state.term, state.reset_to) for state in states]
        try:
            found = await list_offsets(
                self._cluster,
                {state.topic_partition: to for state, _, to in asked if to is not None},
                self._isolation_level,
            )
            missing = [state for state, _, _ in asked if found[state.topic_partition].offset < 0]
            if missing:
                # No record is as late as the requested time: read from the end.
                found |= await list_offsets(
                    self._cluster, dict.fromkeys((s.topic_partition for s in missing), LATEST)
                )
        except OttlaError as error:
            self._on_failure(error, None)
            return
        finally:
            for state in states:
                state.is_resolving = False
        for state, term, _ in asked:
            if state.term == term and state.fetch_offset < 0:
                state.seek(found[state.topic_partition].offset)
        self._on_known()
