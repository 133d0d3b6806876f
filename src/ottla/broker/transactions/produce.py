"""Produce within a transaction: batches wait until their transaction is known to be open.

Only the first of a transaction in each partition do; all others are appended at once.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.partitions.partition import Partition
from ottla.broker.requests.request import RequestContext
from ottla.broker.topics.internal_topics import check_may_produce
from ottla.record.header import HEADER_SIZE, read_header
from ottla.storage.producers.state import Guard
from ottla.transaction.transaction import Identity
from ottla.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker

# From here on leaders add partitions to transactions themselves (KIP-890).
_ADDS_FROM = 12
_ABORTABLE_FROM = 11
# The coordinator is not to be had for the moment: a retriable code that every producer knows.
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
# After these the same batch comes again.
_PASSING = frozenset((*_TRY_AGAIN, ErrorCode.CONCURRENT_TRANSACTIONS))

Append = Callable[[TopicProduceData, PartitionProduceData, Guard | None], PartitionProduceResponse]


class ProduceInTransaction:
    """One request. `append` appends a batch, `finish` is called with the answers of all topics."""

    def __init__(
        self,
        broker: "Broker",
        request: RequestContext,
        body: ProduceRequest,
        append: Append,
        finish: Callable[[list[list[PartitionProduceResponse]]], None],
    ) -> None:
        self._broker = broker
        self._client_id = request.client_id
        self._version = request.version
        self._body = body
        self._append = append
        self._finish = finish
        self._answers: list[list[PartitionProduceResponse]] = []
        self._missing = 1

    def start(self) -> None:
        """Append what can be appended, and ask about the rest."""
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
        """Ask whether the batch belongs to an open transaction, where nobody knows."""
        transactional_id = self._body.transactional_id
        records = wanted.records
        assert transactional_id is not None
        if not isinstance(records, memoryview) or len(records) < HEADER_SIZE:
            return False
        header = read_header(records)
        partition = self._partition(topic, wanted.index)
        if not header.is_transactional or partition is None:
            return False
        identity = Identity(header.producer_id, header.producer_epoch)
        adds = self._version >= _ADDS_FROM
        openings = self._broker.transactions.openings
        if not openings.is_needed(partition, transactional_id, identity, adds=adds):
            return False
        # What was received is gone when this returns.
        wanted.records = memoryview(bytearray(records))
        self._missing += 1
        openings.ask(
            partition,
            transactional_id,
            identity,
            adds=adds,
            on_answer=partial(self._go_on, topic, wanted, answers, place),
        )
        return True

    def _partition(self, topic: TopicProduceData, index: int) -> Partition | None:
        """The partition, where it is led here; to append to another says what is wrong."""
        partitions = self._broker.partitions
        try:
            if self._version >= 13:
                partition = partitions.get_by_id(topic.topic_id, index)
            else:
                partition = partitions.get(topic.name, index)
            if self._version >= _ADDS_FROM:
                # Else the transaction would end with a marker there.
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
                partition.note_refused(wanted.records, self._told(found))
            answers[place] = PartitionProduceResponse(
                index=wanted.index,
                error_code=self._told(found),
                base_offset=-1,
                error_message=(
                    f"the coordinator of {self._body.transactional_id!r} says {found.name}"
                ),
            )
        else:
            answers[place] = self._append(topic, wanted, found)
        self._one_less()

    def _told(self, code: ErrorCode) -> ErrorCode:
        """What a coordinator said, as a producer of the request's version knows it."""
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
