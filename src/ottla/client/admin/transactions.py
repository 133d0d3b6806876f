"""Transactions: list and describe them, find and abort those that block read_committed."""

from collections.abc import Iterable
from dataclasses import dataclass

from ottla.base.errors import ErrorCode
from ottla.base.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition
from ottla.client.admin.calls import Calls
from ottla.client.admin.logs import Logs
from ottla.client.common.arguments import Names, Partitions, checks_calls, name_list
from ottla.client.common.errors import check, code_of, refused
from ottla.wire.messages.transaction_listings import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from ottla.wire.messages.transactions import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

# States in which the coordinator will end the transaction.
_UNDER_WAY = ("Ongoing", "PrepareCommit", "PrepareAbort")


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transactional id as its coordinator lists it."""

    transactional_id: str
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """The state of a transactional id. Times in ms, -1 means none."""

    transactional_id: str
    coordinator_id: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_ms: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that has no commit or abort marker in a partition yet.

    `transaction` is its state at its coordinator; None: no coordinator knows it, so it hangs.
    """

    partition: TopicPartition
    start_offset: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    last_written_ms: int
    transaction: TransactionDescription | None


@checks_calls()
class Transactions:
    """`admin.transactions`: finds open transactions, and aborts them."""

    def __init__(self, calls: Calls, logs: Logs) -> None:
        self._calls = calls
        self._logs = logs

    async def all(
        self,
        *,
        states: Names = (),
        producer_ids: Iterable[int] = (),
        open_for_ms: int = -1,
    ) -> list[TransactionListing]:
        """Return transactional ids by name, filtered by state, producer and duration."""
        request = ListTransactionsRequest(
            state_filters=name_list(states),
            producer_id_filters=list(producer_ids),
            duration_filter=open_for_ms,
        )

        async def ask() -> list[TransactionListing]:
            found: list[TransactionListing] = []
            for broker_id in await self._calls.brokers():
                answer = await self._calls.cluster.ask(broker_id, request, ListTransactionsResponse)
                check(answer.error_code, f"list the transactions of broker {broker_id}")
                if answer.unknown_state_filters:
                    unknown = ", ".join(answer.unknown_state_filters)
                    raise refused(
                        ErrorCode.INVALID_REQUEST,
                        "list transactions",
                        f"there is no state {unknown}; states are Empty, Ongoing, PrepareCommit, "
                        "PrepareAbort, CompleteCommit, CompleteAbort",
                    )
                found += [
                    TransactionListing(
                        each.transactional_id, each.producer_id, each.transaction_state
                    )
                    for each in answer.transaction_states
                ]
            return sorted(found, key=lambda each: each.transactional_id)

        return await self._calls.retried(ask)

    async def describe(self, transactional_ids: Names) -> dict[str, TransactionDescription]:
        """Describe the given ids; missing ones are left out."""
        request = DescribeTransactionsRequest(transactional_ids=name_list(transactional_ids))
        passing = (ErrorCode.NOT_COORDINATOR, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)

        async def ask() -> dict[str, TransactionDescription]:
            found: dict[str, TransactionDescription] = {}
            for broker_id in await self._calls.brokers():
                answer = await self._calls.cluster.ask(
                    broker_id, request, DescribeTransactionsResponse
                )
                for one in answer.transaction_states:
                    if code_of(one.error_code) in passing:
                        continue
                    check(one.error_code, f"describe transactional id {one.transactional_id!r}")
                    found[one.transactional_id] = TransactionDescription(
                        one.transactional_id,
                        broker_id,
                        one.producer_id,
                        one.producer_epoch,
                        one.transaction_state,
                        one.transaction_timeout_ms,
                        one.transaction_start_time_ms,
                        tuple(
                            TopicPartition(topic.topic, index)
                            for topic in one.topics
                            for index in topic.partitions
                        ),
                    )
            return found

        return await self._calls.retried(ask)

    async def open_in(self, partitions: Partitions) -> list[OpenTransaction]:
        """Return the open transactions in `partitions`, sorted by partition and first offset."""
        producers = await self._logs.producers(partitions)
        opened = {
            each.producer_id
            for described in producers.values()
            for each in described
            if each.transaction_start_offset >= 0
        }
        known: dict[str, TransactionDescription] = {}
        if opened:
            listed = await self.all(producer_ids=opened)
            known = await self.describe(each.transactional_id for each in listed)
        found = []
        for partition, described in sorted(producers.items()):
            found += [
                OpenTransaction(
                    partition,
                    each.transaction_start_offset,
                    each.producer_id,
                    each.producer_epoch,
                    each.coordinator_epoch,
                    each.last_timestamp_ms,
                    _of(known.values(), each.producer_id, partition),
                )
                for each in sorted(described, key=lambda each: each.transaction_start_offset)
                if each.transaction_start_offset >= 0
            ]
        return found

    async def abort_in_partition(self, what: OpenTransaction) -> None:
        """Write an abort marker for a hanging transaction into one partition (KIP-664)."""
        topic, index = what.partition
        marker = WritableTxnMarker(
            producer_id=what.producer_id,
            producer_epoch=what.producer_epoch,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[index])],
            coordinator_epoch=max(what.coordinator_epoch, 0),
        )

        async def write() -> None:
            (leader,) = await self._calls.by_leader([what.partition])
            request = WriteTxnMarkersRequest(markers=[marker])
            answer = await self._calls.cluster.ask(leader, request, WriteTxnMarkersResponse)
            (result,) = answer.markers[0].topics[0].partitions
            check(result.error_code, f"abort the transaction in {what.partition}")

        await self._calls.retried(write)

    async def abort(self, transactional_id: str) -> None:
        """Abort the open transaction of a transactional id, and fence its producer."""
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=60_000,
            producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_PRODUCER_EPOCH,
        )

        async def fence() -> None:
            what = f"abort the transaction of {transactional_id!r}"
            found = (await self.describe([transactional_id])).get(transactional_id)
            if found is None:
                raise refused(
                    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, what, "`ottla txn list` shows all"
                )
            answer = await self._calls.cluster.ask(
                found.coordinator_id, request, InitProducerIdResponse
            )
            # Not a failure: the abort is decided, only its markers are not written yet.
            if answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
                check(answer.error_code, what)

        await self._calls.retried(fence)


def _of(
    known: Iterable[TransactionDescription], producer_id: int, partition: TopicPartition
) -> TransactionDescription | None:
    """Return the transaction that its coordinator will end in the partition."""
    for each in known:
        if (
            each.producer_id == producer_id
            and each.state in _UNDER_WAY
            and partition in each.partitions
        ):
            return each
    return None
