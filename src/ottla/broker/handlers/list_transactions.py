"""ListTransactions (66), versions 0-2: lists the transactional ids that this broker coordinates.

Version 1 filters by how long a transaction is open (KIP-994), 2 by a pattern of the id (KIP-1152).
"""

from collections.abc import Callable
from dataclasses import dataclass

from ottla.base.patterns import compiled
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import shown
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.transactions import Transactions
from ottla.security.names import AclOperation, AclResource
from ottla.transaction.list_filter import Filter, read_states
from ottla.wire.messages.transaction_listings import (
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
)


@dataclass(slots=True, eq=False, repr=False)
class ListTransactions(Handler):
    """Serves ListTransactions."""

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
        # Unknown states match no transaction; the answer names them.
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
