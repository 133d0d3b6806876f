"""Sends the markers of a transaction to the leaders of its partitions until all are written.

Each broker gets one WriteTxnMarkers request at a time; later markers go into its next one.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicPartition, by_topic
from ottla.broker.cluster.links import Links
from ottla.broker.groups import Groups
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.view import ClusterView
from ottla.broker.topics.internal_topics import CONSUMER_OFFSETS
from ottla.broker.transactions.shard import TransactionShard
from ottla.coordination.interface.store import Store
from ottla.metadata import nodes, paths
from ottla.transaction.transaction import Markers, TransactionOutcome
from ottla.wire.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


async def deleted_among(
    store: Store, partitions: Iterable[TopicPartition]
) -> frozenset[TopicPartition]:
    """Return the partitions that do not exist, or are being deleted. Raises OttlaError."""
    counts: dict[str, int] = {}
    gone = []
    for partition in partitions:
        if partition.topic not in counts:
            counts[partition.topic] = await _partitions_of(store, partition.topic)
        if partition.partition >= counts[partition.topic]:
            gone.append(partition)
    return frozenset(gone)


async def _partitions_of(store: Store, topic: str) -> int:
    """Return the number of a topic's partitions; 0 if it is deleted or marked for deletion."""
    path = paths.topic(topic)
    node = await store.get(path)
    if node is None or await store.get(paths.topic_deletion(topic)) is not None:
        return 0
    return len(nodes.decode_topic(path, node.data).replicas)


class MarkerWriter:
    """Appends all end-of-transaction markers on this broker.

    In partitions of `__consumer_offsets` the group coordinator appends them, and commits or drops
    the offsets of the transaction at the same time.
    """

    def __init__(self, partitions: Partitions, groups: Groups) -> None:
        self._partitions = partitions
        self._groups = groups

    def write(
        self,
        outcome: TransactionOutcome,
        partitions: Sequence[TopicPartition],
        on_done: Callable[[dict[TopicPartition, ErrorCode]], None],
    ) -> None:
        """Append the marker to each of `partitions`.

        `on_done` is called with an error code for each partition when every marker is committed or
        has failed.
        """
        codes: dict[TopicPartition, ErrorCode] = {}
        ends: list[tuple[TopicPartition, int]] = []
        for name in partitions:
            try:
                ends.append((name, self._append(outcome, name)))
            except OttlaError as error:
                codes[name] = error.code

        def on_committed(name: TopicPartition, code: ErrorCode) -> None:
            codes[name] = code
            if len(codes) == len(partitions):
                on_done(codes)

        if not ends:
            on_done(codes)
        for name, end in ends:
            partition = self._partitions.get(*name)
            partition.on_high_watermark(end, partial(on_committed, name))

    def _append(self, outcome: TransactionOutcome, name: TopicPartition) -> int:
        """Append a marker; return the end offset that must be committed."""
        if name.topic == CONSUMER_OFFSETS:
            return self._groups.end_transaction(name.partition, outcome)
        return self._partitions.get(*name).end_transaction(
            outcome.marker,
            outcome.producer_id,
            outcome.producer_epoch,
            raises_epoch=outcome.raises_epoch,
        )


_log = logging.getLogger(__name__)

# The time before a retry. There is probably a new leader then, or enough in-sync replicas.
_RETRY_MS = 50
_TIMEOUT_MS = 30_000
# The partition has a later epoch of the producer or of the coordinator: no marker is needed.
_OVERTAKEN = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)


@dataclass(eq=False, slots=True)
class _Job:
    """The markers of one transaction; `missing` has the partitions without their marker."""

    shard: TransactionShard
    outcome: TransactionOutcome
    on_done: Callable[[], None]
    missing: set[TopicPartition] = field(default_factory=set)


class MarkerSender:
    """Sends the markers of all transaction coordinators on this broker, with retries."""

    def __init__(
        self, view: ClusterView, runtime: Runtime, store: Store, writer: MarkerWriter, links: Links
    ) -> None:
        self._view = view
        self._runtime = runtime
        self._store = store
        self._writer = writer
        self._links = links
        # Markers of the next request to each broker; a key exists while a request is in flight.
        self._queues: dict[BrokerId, list[tuple[_Job, list[TopicPartition]]]] = {}

    def __len__(self) -> int:
        """The number of brokers with a request in flight."""
        return len(self._queues)

    def on_image(self) -> None:
        """Give up requests to brokers that are not in the new image."""
        self._links.keep_only(self._view.image.brokers)

    def close(self) -> None:
        """Close, because the broker stops."""
        self._links.close()

    def send(self, shard: TransactionShard, markers: Markers, on_done: Callable[[], None]) -> None:
        """Send the markers of `shard`; call `on_done` when all partitions have them."""
        outcome = TransactionOutcome(
            *markers.identity,
            markers.is_commit,
            shard.leader_epoch,
            markers.client_version,
        )
        job = _Job(shard, outcome, on_done, set(markers.partitions))
        self._send(job, sorted(job.missing))

    def _send(self, job: _Job, partitions: Iterable[TopicPartition]) -> None:
        """Send the markers to the current leaders of `partitions`."""
        if job.shard.closed:
            return
        image = self._view.image
        by_leader: dict[BrokerId, list[TopicPartition]] = {}
        later: list[TopicPartition] = []
        unknown: list[TopicPartition] = []
        for partition in partitions:
            state = image.partition(*partition)
            if state is None:
                unknown.append(partition)
            elif state.leader in image.brokers:
                by_leader.setdefault(state.leader, []).append(partition)
            else:
                later.append(partition)
        if later:
            self._retry(job, later)
        if unknown:
            self._runtime.spawn(self._look_up(job, unknown))
        for leader, led in by_leader.items():
            if leader == self._view.broker_id:
                self._writer.write(job.outcome, led, lambda codes: self._on_written(job, codes))
            else:
                self._queue(leader, job, led)
        if not by_leader and not later and not unknown:
            self._check_done(job)

    async def _look_up(self, job: _Job, unknown: list[TopicPartition]) -> None:
        """Drop deleted partitions, which need no marker (S26), and retry the remaining ones.

        The remaining partitions are new, and not in this broker's image yet.
        """
        try:
            gone = await deleted_among(self._store, unknown)
        except OttlaError as error:
            _log.info(
                "cannot find out whether %s exists, trying again: %s", unknown[0], error.message
            )
            gone = frozenset()
        job.missing -= gone
        if behind := [partition for partition in unknown if partition not in gone]:
            self._retry(job, behind)
        self._check_done(job)

    def _queue(self, leader: BrokerId, job: _Job, led: list[TopicPartition]) -> None:
        queue = self._queues.get(leader)
        if queue is not None:
            queue.append((job, led))
            return
        self._queues[leader] = [(job, led)]
        self._runtime.spawn(self._request(leader))

    async def _request(self, leader: BrokerId) -> None:
        """Send a broker its markers, one request after another, until its queue is empty."""
        try:
            while sent := self._queues[leader]:
                self._queues[leader] = []
                request = WriteTxnMarkersRequest(
                    markers=[_marker(job.outcome, led) for job, led in sent]
                )
                try:
                    answer: WriteTxnMarkersResponse = await self._links.request(
                        leader, request, timeout_ms=_TIMEOUT_MS
                    )
                except OttlaError as error:
                    _log.info(
                        "cannot send transaction markers to broker %d, trying again: %s",
                        leader,
                        error.message,
                    )
                    for job, led in sent:
                        self._retry(job, led)
                    continue
                for (job, led), result in zip(sent, answer.markers, strict=True):
                    codes = dict.fromkeys(led, ErrorCode.UNKNOWN_SERVER_ERROR)
                    for topic in result.topics:
                        for each in topic.partitions:
                            name = TopicPartition(topic.name, each.partition_index)
                            codes[name] = ErrorCode(each.error_code)
                    self._on_written(job, codes)
        finally:
            del self._queues[leader]

    def _on_written(self, job: _Job, codes: dict[TopicPartition, ErrorCode]) -> None:
        failed = []
        for partition, code in codes.items():
            if code is ErrorCode.NONE:
                job.missing.discard(partition)
            elif code in _OVERTAKEN:
                _log.warning(
                    "%s: the leader refused a marker as superseded: %s for %s",
                    partition,
                    code.name,
                    job.outcome,
                )
                job.missing.discard(partition)
            else:
                failed.append(partition)
        if failed:
            self._retry(job, failed)
        self._check_done(job)

    def _retry(self, job: _Job, partitions: list[TopicPartition]) -> None:
        self._runtime.purgatory.schedule(_RETRY_MS, lambda: self._send(job, partitions))

    def _check_done(self, job: _Job) -> None:
        if not job.missing and not job.shard.closed:
            job.on_done()


def _marker(outcome: TransactionOutcome, partitions: Iterable[TopicPartition]) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=outcome.producer_id,
        producer_epoch=outcome.producer_epoch,
        transaction_result=outcome.is_commit,
        topics=[
            WritableTxnMarkerTopic(name=topic, partition_indexes=indexes)
            for topic, indexes in by_topic(partitions).items()
        ],
        coordinator_epoch=outcome.coordinator_epoch,
        transaction_version=outcome.client_version,
    )
