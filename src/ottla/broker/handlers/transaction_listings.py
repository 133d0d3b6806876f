"""The handlers that list and describe transactions and producers."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import by_topic
from ottla.base.patterns import compiled
from ottla.broker.coordinators import Ticket
from ottla.broker.groups.answer import PartedResponse
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import Amend, DeniedAnswer, Guard, each, named, shown
from ottla.broker.requests.portions import in_portions, items, once
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.transactions import Transactions
from ottla.security.names import AclOperation, AclResource
from ottla.transaction.coordinator import Filter, TransactionCoordinator, read_states
from ottla.transaction.transaction import Transaction, TransactionDecision
from ottla.wire.messages.transaction_listings import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
    PartitionResponse,
    ProducerState,
    TopicData,
    TopicRequest,
    TopicResponse,
    TransactionState,
)


@dataclass(slots=True, eq=False, repr=False)
class ListTransactions(Handler):
    """ListTransactions (66): lists the transactional ids that this broker coordinates.

    Version 1 filters by the duration of the open transaction (KIP-994), 2 by a pattern of the id
    (KIP-1152).
    """

    api = Api(
        ListTransactionsRequest,
        ListTransactionsResponse,
        Versions(0, 2),
        needs=shown(
            lambda response: response.transaction_states,
            AclOperation.DESCRIBE,
            AclResource.TRANSACTIONAL_ID,
            lambda state: state.transactional_id,
        ),
    )

    runtime: Runtime
    transactions: Transactions

    def handle(
        self, _request: RequestContext, body: ListTransactionsRequest
    ) -> ListTransactionsResponse:
        """List the transactions that match the filters."""
        states, unknown = read_states(body.state_filters)
        wanted = Filter(
            states,
            frozenset(body.producer_id_filters),
            body.duration_filter,
            _matcher(body.transactional_id_pattern),
        )
        found = []
        # An unknown state matches no transaction; the answer has a list of the unknown states.
        if states or not body.state_filters:
            now_ms = self.runtime.clock.now_ms()
            for shard in self.transactions.shards():
                found += shard.loaded().list_transactions(wanted, now_ms)
        return ListTransactionsResponse(
            unknown_state_filters=unknown,
            transaction_states=[
                ListedTransaction(
                    transactional_id=transactional_id,
                    producer_id=known.producer_id,
                    transaction_state=known.state.label,
                )
                for transactional_id, known in found
            ],
        )


def _matcher(pattern: str | None) -> Callable[[str], bool] | None:
    if not pattern:
        return None
    found = compiled(pattern, "TransactionalIdPattern")
    return lambda transactional_id: found.fullmatch(transactional_id) is not None


def _needs(
    check: RequestCheck[DescribeTransactionsRequest],
) -> Amend[DescribeTransactionsResponse] | DeniedAnswer:
    """Require DESCRIBE on each transactional id; hide topics that the client may not DESCRIBE."""
    refused = _describe_each(check)
    if isinstance(refused, DeniedAnswer):
        return refused

    def amend(response: DescribeTransactionsResponse) -> None:
        for state in response.transaction_states:
            state.topics = [
                topic
                for topic in state.topics
                if check.sees(AclOperation.DESCRIBE, AclResource.TOPIC, topic.topic)
            ]
        if refused is not None:
            refused(response)

    return amend


_describe_each: Guard[DescribeTransactionsRequest, DescribeTransactionsResponse] = each(
    lambda body: body.transactional_ids,
    lambda response: response.transaction_states,
    named(AclOperation.DESCRIBE, AclResource.TRANSACTIONAL_ID, str),
)


@dataclass(slots=True, eq=False, repr=False)
class DescribeTransactions(Handler):
    """DescribeTransactions (65), version 0: describes the state of transactional ids (KIP-664)."""

    api = Api(
        DescribeTransactionsRequest,
        DescribeTransactionsResponse,
        Versions(0, 0),
        needs=_needs,
        portions=in_portions(
            lambda body: body.transactional_ids, lambda response: response.transaction_states
        ),
        once=once(lambda body: body.transactional_ids),
        on_error=lambda body, code, _message: DescribeTransactionsResponse(
            transaction_states=[_transactions_failed(each, code) for each in body.transactional_ids]
        ),
    )

    transactions: Transactions

    def handle(self, request: RequestContext, body: DescribeTransactionsRequest) -> None:
        """Ask the coordinator of each transactional id."""
        parted = PartedResponse(
            request,
            len(body.transactional_ids),
            lambda parts: DescribeTransactionsResponse(transaction_states=parts),
        )
        for index, transactional_id in enumerate(body.transactional_ids):
            ticket = Ticket(partial(_put, parted, index, transactional_id), lambda code: code)
            self.transactions.run(transactional_id, ticket, partial(_describe, transactional_id))


def _describe(
    transactional_id: str, coordinator: TransactionCoordinator, ticket: object, _now_ms: int
) -> TransactionDecision:
    return coordinator.describe(ticket, transactional_id)


def _put(
    parted: PartedResponse, index: int, transactional_id: str, found: Transaction | ErrorCode | None
) -> None:
    if found is None:
        found = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    if isinstance(found, ErrorCode):
        parted.put(index, _transactions_failed(transactional_id, found))
        return
    topics = by_topic(sorted(found.partitions))
    parted.put(
        index,
        TransactionState(
            transactional_id=transactional_id,
            transaction_state=found.state.label,
            transaction_timeout_ms=found.timeout_ms,
            transaction_start_time_ms=found.start_timestamp_ms,
            producer_id=found.producer_id,
            producer_epoch=found.producer_epoch,
            topics=[TopicData(topic=topic, partitions=each) for topic, each in topics.items()],
        ),
    )


def _transactions_failed(transactional_id: str, code: ErrorCode) -> TransactionState:
    return TransactionState(
        error_code=code,
        transactional_id=transactional_id,
        transaction_timeout_ms=-1,
        transaction_start_time_ms=-1,
        producer_id=-1,
        producer_epoch=-1,
    )


def _add_indexes(topic: TopicRequest, other: TopicRequest) -> None:
    topic.partition_indexes += other.partition_indexes


@dataclass(slots=True, eq=False, repr=False)
class DescribeProducers(Handler):
    """DescribeProducers (61): lists the producers of a partition, and their transactions.

    It is used to find hanging transactions (KIP-664). Any replica answers; the answer of a follower
    is from its own log.
    """

    api = Api(
        DescribeProducersRequest,
        DescribeProducersResponse,
        Versions(0, 0),
        needs=each(
            lambda body: body.topics,
            lambda response: response.topics,
            named(AclOperation.READ, AclResource.TOPIC, lambda topic: topic.name),
        ),
        portions=in_portions(
            lambda body: body.topics,
            lambda response: response.topics,
            lambda topic: topic.name,
            inner=items(lambda topic: topic.partition_indexes, lambda topic: topic.partitions),
            most=64,
        ),
        once=once(
            lambda body: body.topics,
            lambda topic: topic.name,
            _add_indexes,
            inner=once(lambda topic: topic.partition_indexes),
        ),
        on_error=lambda body, code, message: DescribeProducersResponse(
            topics=[
                TopicResponse(
                    name=topic.name,
                    partitions=[
                        _producers_failed(i, code, message) for i in topic.partition_indexes
                    ],
                )
                for topic in body.topics
            ]
        ),
    )

    partitions: Partitions

    def handle(
        self, _request: RequestContext, body: DescribeProducersRequest
    ) -> DescribeProducersResponse:
        """Describe the producers of each partition."""
        return DescribeProducersResponse(
            topics=[
                TopicResponse(
                    name=topic.name,
                    # Built in one expression, because a partition may have many producers.
                    partitions=[
                        self._partition(topic.name, i)
                        for i in dict.fromkeys(topic.partition_indexes)
                    ],
                )
                for topic in body.topics
            ]
        )

    def _partition(self, topic: str, index: int) -> PartitionResponse:
        try:
            partition = self.partitions.get(topic, index)
            partition.check_readable()
            log = partition.log
        except OttlaError as error:
            return _producers_failed(index, error.code, error.message)
        return PartitionResponse(
            partition_index=index,
            active_producers=[
                ProducerState(
                    producer_id=entry.producer_id,
                    producer_epoch=entry.producer_epoch,
                    last_sequence=entry.last_sequence,
                    last_timestamp=entry.last_timestamp,
                    coordinator_epoch=entry.coordinator_epoch,
                    current_txn_start_offset=entry.transaction_first_offset,
                )
                for entry in log.producers.described()
            ],
        )


def _producers_failed(index: int, code: ErrorCode, message: str | None) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=code, error_message=message)
