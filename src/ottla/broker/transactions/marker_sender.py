"""Has the leaders of a transaction's partitions write its outcome, until all have done so.

What is to be told to one broker is gathered while it has not answered, and goes in one request.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicPartition, by_topic
from ottla.broker.transactions.deleted import deleted_among
from ottla.broker.transactions.links import Links
from ottla.broker.transactions.marker_writing import Outcome, write_markers
from ottla.transaction.turn import Markers
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker
    from ottla.broker.transactions.shard import TransactionShard

_log = logging.getLogger(__name__)

# Until then the leader is most likely another, or its replicas are back in sync.
_RETRY_MS = 50
_TIMEOUT_MS = 30_000
# The partition knows a later epoch of the producer, or of the coordinator: nothing is left to do.
_OVERTAKEN = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)


@dataclass(eq=False, slots=True)
class _Job:
    """The markers of one transaction. `missing` are the partitions that do not know yet."""

    shard: "TransactionShard"
    outcome: Outcome
    on_done: Callable[[], None]
    missing: set[TopicPartition] = field(default_factory=set)


class MarkerSender:
    """All outcomes that this broker's coordinators have to spread."""

    def __init__(self, broker: "Broker", links: Links) -> None:
        self._broker = broker
        self._links = links
        # What is to be told next to each broker; a broker is in here while it is asked.
        self._queues: dict[BrokerId, list[tuple[_Job, list[TopicPartition]]]] = {}

    def send(
        self, shard: "TransactionShard", markers: Markers, on_done: Callable[[], None]
    ) -> None:
        """Write `markers` in the name of `shard`, and call `on_done` when they stand everywhere."""
        outcome = Outcome(
            *markers.identity,
            markers.is_commit,
            shard.leader_epoch,
            markers.client_version,
        )
        job = _Job(shard, outcome, on_done, set(markers.partitions))
        self._tell(job, sorted(job.missing))

    def _tell(self, job: _Job, partitions: Iterable[TopicPartition]) -> None:
        """Tell those who lead `partitions` now."""
        if job.shard.closed:
            return
        image = self._broker.image
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
            self._again(job, later)
        if unknown:
            self._broker.spawn(self._look_up(job, unknown))
        for leader, led in by_leader.items():
            if leader == self._broker.broker_id:
                write_markers(
                    self._broker, job.outcome, led, lambda codes: self._on_written(job, codes)
                )
            else:
                self._queue(leader, job, led)
        if not by_leader and not later and not unknown:
            self._look(job)

    async def _look_up(self, job: _Job, unknown: list[TopicPartition]) -> None:
        """Leave out what is deleted (S26): nobody will ever ask how it ended.

        The rest this broker has not been told of yet.
        """
        try:
            gone = await deleted_among(self._broker.store, unknown)
        except OttlaError as error:
            _log.info("cannot tell whether %s exists: %s", unknown[0], error.message)
            gone = frozenset()
        job.missing -= gone
        if behind := [partition for partition in unknown if partition not in gone]:
            self._again(job, behind)
        self._look(job)

    def _queue(self, leader: BrokerId, job: _Job, led: list[TopicPartition]) -> None:
        queue = self._queues.get(leader)
        if queue is not None:
            queue.append((job, led))
            return
        self._queues[leader] = [(job, led)]
        self._broker.spawn(self._ask(leader))

    async def _ask(self, leader: BrokerId) -> None:
        """Tell a broker what is to be told to it, until that is all."""
        try:
            while told := self._queues[leader]:
                self._queues[leader] = []
                request = WriteTxnMarkersRequest(
                    markers=[_marker(job.outcome, led) for job, led in told]
                )
                try:
                    answer: WriteTxnMarkersResponse = await self._links.request(
                        leader, request, timeout_ms=_TIMEOUT_MS
                    )
                except OttlaError as error:
                    _log.info("broker %d does not take markers: %s", leader, error.message)
                    for job, led in told:
                        self._again(job, led)
                    continue
                for (job, led), result in zip(told, answer.markers, strict=True):
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
                _log.warning("%s has been overtaken: %s for %s", partition, code.name, job.outcome)
                job.missing.discard(partition)
            else:
                failed.append(partition)
        if failed:
            self._again(job, failed)
        self._look(job)

    def _again(self, job: _Job, partitions: list[TopicPartition]) -> None:
        self._broker.purgatory.schedule(_RETRY_MS, lambda: self._tell(job, partitions))

    def _look(self, job: _Job) -> None:
        if not job.missing and not job.shard.closed:
            job.on_done()


def _marker(outcome: Outcome, partitions: Iterable[TopicPartition]) -> WritableTxnMarker:
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
