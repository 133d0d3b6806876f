"""DescribeTransactions (65), version 0: describes the state of transactional ids (KIP-664)."""

from dataclasses import dataclass
from functools import partial

from ottla.base.errors import ErrorCode
from ottla.base.ids import by_topic
from ottla.broker.groups.answer import PartedResponse
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import Amend, DeniedAnswer, Guard, each, named
from ottla.broker.requests.portions import in_portions, once
from ottla.broker.requests.request import RequestContext
from ottla.broker.transactions import Transactions
from ottla.broker.transactions.answer import TransactionAnswer
from ottla.security.names import AclOperation, AclResource
from ottla.transaction.coordinator import TransactionCoordinator
from ottla.transaction.transaction import Transaction
from ottla.transaction.turn import TransactionDecision
from ottla.wire.messages.transaction_listings import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


def _needs(
    check: RequestCheck[DescribeTransactionsRequest],
) -> Amend[DescribeTransactionsResponse] | DeniedAnswer:
    """Require DESCRIBE on each transactional id.

    Topics that the client may not DESCRIBE are hidden.
    """
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
    """Serves DescribeTransactions."""

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
            transaction_states=[_failed(each, code) for each in body.transactional_ids]
        ),
    )

    transactions: Transactions

    def handle(self, request: RequestContext, body: DescribeTransactionsRequest) -> None:
        """Ask the coordinator of each id."""
        parted = PartedResponse(
            request,
            len(body.transactional_ids),
            lambda parts: DescribeTransactionsResponse(transaction_states=parts),
        )
        for index, transactional_id in enumerate(body.transactional_ids):
            ticket = TransactionAnswer(
                partial(_put, parted, index, transactional_id), lambda code: code
            )
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
        parted.put(index, _failed(transactional_id, found))
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


def _failed(transactional_id: str, code: ErrorCode) -> TransactionState:
    return TransactionState(
        error_code=code,
        transactional_id=transactional_id,
        transaction_timeout_ms=-1,
        transaction_start_time_ms=-1,
        producer_id=-1,
        producer_epoch=-1,
    )
