"""Handles a transactional Produce: first batches wait until their transaction is verified.

Only the first batch of a transaction in each partition waits; later batches are appended at once.
"""

from collections.abc import Callable
from functools import partial

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.requests.request import RequestContext
from ottla.broker.topics.internal_topics import check_may_produce
from ottla.broker.transactions.verification import Verifications
from ottla.record.header import HEADER_SIZE, read_header
from ottla.storage.producers.state import Guard
from ottla.transaction.transaction import ProducerIdentity
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)

# From this version on, leaders add partitions to transactions themselves (KIP-890).
_ADDS_FROM = 12
_ABORTABLE_FROM = 11
# Errors of a temporarily unavailable coordinator, and the retriable code for all producer versions.
_TRY_AGAIN = dict.fromkeys(
    (
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    ),
    ErrorCode.NOT_ENOUGH_REPLICAS,
)
# After these errors the producer retries the batch.
_PASSING = frozenset((*_TRY_AGAIN, ErrorCode.CONCURRENT_TRANSACTIONS))

Append = Callable[[TopicProduceData, PartitionProduceData, Guard | None], PartitionProduceResponse]


class ProduceInTransaction:
    """One Produce request; `append` appends a batch, `finish` is called with all answers."""

    def __init__(
        self,
        partitions: Partitions,
        verifications: Verifications,
        request: RequestContext,
        body: ProduceRequest,
        append: Append,
        finish: Callable[[list[list[PartitionProduceResponse]]], None],
    ) -> None:
        self._partitions = partitions
        self._verifications = verifications
        self._client_id = request.client_id
        self._version = request.version
        self._body = body
        self._append = append
        self._finish = finish
        self._answers: list[list[PartitionProduceResponse]] = []
        self._missing = 1

    def start(self) -> None:
        """Append batches that need no verification, and verify the remaining ones first."""
        for topic in self._body.topic_data:
            answers: list[PartitionProduceResponse] = []
            self._answers.append(answers)
            for place, wanted in enumerate(topic.partition_data):
                answers.append(PartitionProduceResponse(index=wanted.index))
                if not self._waits(topic, wanted, answers, place):
                    answers[place] = self._append(topic, wanted, None)
        self._one_less()

    def _waits(
        self,
        topic: TopicProduceData,
        wanted: PartitionProduceData,
        answers: list[PartitionProduceResponse],
        place: int,
    ) -> bool:
        """Start verifying that the batch belongs to an open transaction.

        Return False if no verification is needed.
        """
        transactional_id = self._body.transactional_id
        records = wanted.records
        assert transactional_id is not None
        if not isinstance(records, memoryview) or len(records) < HEADER_SIZE:
            return False
        header = read_header(records)
        partition = self._partition(topic, wanted.index)
        if not header.is_transactional or partition is None:
            return False
        identity = ProducerIdentity(header.producer_id, header.producer_epoch)
        adds = self._version >= _ADDS_FROM
        if not self._verifications.is_needed(partition, transactional_id, identity, adds=adds):
            return False
        # The request's buffer is reused after this returns, so copy the batch.
        wanted.records = memoryview(bytearray(records))
        self._missing += 1
        self._verifications.verify(
            partition,
            transactional_id,
            identity,
            adds=adds,
            on_answer=partial(self._go_on, topic, wanted, answers, place),
        )
        return True

    def _partition(self, topic: TopicProduceData, index: int) -> Partition | None:
        """Return the partition if this broker leads it; else None: `append` reports the error."""
        partitions = self._partitions
        try:
            if self._version >= 13:
                partition = partitions.get_by_id(topic.topic_id, index)
            else:
                partition = partitions.get(topic.name, index)
            if self._version >= _ADDS_FROM:
                # Otherwise the transaction would include this partition, and end with a marker in
                # it.
                check_may_produce(partition.topic, self._client_id)
            partition.check_led()
        except OttlaError:
            return None
        return partition

    def _go_on(
        self,
        topic: TopicProduceData,
        wanted: PartitionProduceData,
        answers: list[PartitionProduceResponse],
        place: int,
        found: Guard | ErrorCode,
    ) -> None:
        if isinstance(found, ErrorCode):
            partition = self._partition(topic, wanted.index)
            if partition is not None and found in _PASSING:
                partition.note_refused(wanted.records, self._code_for(found))
            answers[place] = PartitionProduceResponse(
                index=wanted.index,
                error_code=self._code_for(found),
                base_offset=-1,
                error_message=(
                    f"the coordinator of {self._body.transactional_id!r} says {found.name}"
                ),
            )
        else:
            answers[place] = self._append(topic, wanted, found)
        self._one_less()

    def _code_for(self, code: ErrorCode) -> ErrorCode:
        """Convert the coordinator's error to a code that a producer of this version knows."""
        if code is ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if code is ErrorCode.TRANSACTION_ABORTABLE and self._version < _ABORTABLE_FROM:
            return ErrorCode.INVALID_TXN_STATE
        if code is ErrorCode.CONCURRENT_TRANSACTIONS and self._version < _ADDS_FROM:
            return ErrorCode.NOT_ENOUGH_REPLICAS
        return _TRY_AGAIN.get(code, code)

    def _one_less(self) -> None:
        self._missing -= 1
        if self._missing == 0:
            self._finish(self._answers)
