"""EndTxn (26), versions 0-5: commits or aborts a transaction.

The answer is sent when the decision is committed; the markers are written afterwards. From version
2 on a fenced producer gets PRODUCER_FENCED; version 5 raises the producer's epoch and answers with
the new one (KIP-890).
"""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import resource
from ottla.broker.requests.request import RequestContext
from ottla.broker.transactions import Transactions
from ottla.broker.transactions.answer import as_version_knows, reply_with
from ottla.security.names import AclOperation, AclResource
from ottla.transaction.end_txn import End
from ottla.transaction.transaction import EPOCH_PER_TRANSACTION, ProducerIdentity
from ottla.transaction.turn import Answered
from ottla.wire.messages.transactions import EndTxnRequest, EndTxnResponse

_PRODUCER_FENCED_FROM = 2
_EPOCH_PER_TRANSACTION_FROM = 5


@dataclass(slots=True, eq=False, repr=False)
class EndTxn(Handler):
    """Serves EndTxn."""

    api = Api(
        EndTxnRequest,
        EndTxnResponse,
        Versions(0, 5),
        needs=resource(
            AclOperation.WRITE, AclResource.TRANSACTIONAL_ID, lambda body: body.transactional_id
        ),
    )

    transactions: Transactions

    def handle(self, request: RequestContext, body: EndTxnRequest) -> EndTxnResponse | None:
        """Have the coordinator decide."""
        if not body.transactional_id:
            raise OttlaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        raises = request.version >= _EPOCH_PER_TRANSACTION_FROM
        wish = End(
            ProducerIdentity(body.producer_id, body.producer_epoch),
            body.committed,
            EPOCH_PER_TRANSACTION if raises else EPOCH_PER_TRANSACTION - 1,
        )

        def build(answered: Answered) -> EndTxnResponse:
            response = self.on_error(body, answered.code, None, request.version)
            if answered.code is ErrorCode.NONE:
                response.producer_id, response.producer_epoch = answered.identity
            return response

        self.transactions.run_with_producer_id(
            body.transactional_id,
            reply_with(request, build, Answered),
            lambda coordinator, ticket, fresh, now_ms: coordinator.end(
                ticket, body.transactional_id, wish, fresh, now_ms
            ),
        )
        return None

    @staticmethod
    def on_error(
        _body: EndTxnRequest, code: ErrorCode, _message: str | None, version: int
    ) -> EndTxnResponse:
        """Return the error code that clients of the request's version know."""
        code = as_version_knows(code, version, fenced_from=_PRODUCER_FENCED_FROM)
        return EndTxnResponse(error_code=code)
