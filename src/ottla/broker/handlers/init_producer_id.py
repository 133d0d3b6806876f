"""InitProducerId (22), versions 0-5: returns a producer id, and fences earlier producers.

Without a transactional id the answer is a new id, for an idempotent producer. With one, the answer
is the transactional id's producer id with a new epoch: an earlier producer is fenced, and its open
transaction aborted. From version 3 on a producer may name its id and epoch, and continue (KIP-360);
from 4 on a fenced producer gets PRODUCER_FENCED.
"""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ottla.broker.produce.producer_ids import ProducerIdBlocks
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.transactions import Transactions
from ottla.broker.transactions.answer import as_version_knows, reply_with
from ottla.security.names import AclOperation, AclResource
from ottla.transaction.init_producer_id import ProducerIdWish
from ottla.transaction.transaction import ProducerIdentity
from ottla.transaction.turn import Answered
from ottla.wire.messages.transactions import InitProducerIdRequest, InitProducerIdResponse

_PRODUCER_FENCED_FROM = 4


def _needs(check: RequestCheck[InitProducerIdRequest]) -> None:
    """Require WRITE on the transactional id.

    Of an idempotent producer, WRITE on any topic (KIP-679).
    """
    name = check.body.transactional_id
    if name is not None:
        check.require(AclOperation.WRITE, AclResource.TRANSACTIONAL_ID, name)
    elif not check.access.allows_any(AclOperation.WRITE, AclResource.TOPIC):
        check.require_cluster(AclOperation.IDEMPOTENT_WRITE)


@dataclass(slots=True, eq=False, repr=False)
class InitProducerId(Handler):
    """Serves InitProducerId."""

    api = Api(InitProducerIdRequest, InitProducerIdResponse, Versions(0, 5), needs=_needs)

    runtime: Runtime
    transactions: Transactions
    producer_ids: ProducerIdBlocks

    def handle(
        self, request: RequestContext, body: InitProducerIdRequest
    ) -> InitProducerIdResponse | None:
        """Return a new producer id with epoch 0, or ask the transactional id's coordinator."""
        if (body.producer_id == NO_PRODUCER_ID) != (body.producer_epoch == NO_PRODUCER_EPOCH):
            raise OttlaError(
                ErrorCode.INVALID_REQUEST, "a producer id and its epoch must be given together"
            )
        if body.transactional_id is not None:
            self._initialize(request, body, body.transactional_id)
            return None
        producer_id = self.producer_ids.take()
        if producer_id is None:
            self.runtime.spawn(self._reserve(request, body))
            return None
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)

    async def _reserve(self, request: RequestContext, body: InitProducerIdRequest) -> None:
        try:
            producer_id = await self.producer_ids.reserve()
        except OttlaError as error:
            request.reply(self.on_error(body, error.code, error.message, request.version))
            return
        request.reply(InitProducerIdResponse(producer_id=producer_id, producer_epoch=0))

    def _initialize(
        self, request: RequestContext, body: InitProducerIdRequest, transactional_id: str
    ) -> None:
        if not transactional_id:
            raise OttlaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        wish = ProducerIdWish(
            body.transaction_timeout_ms, ProducerIdentity(body.producer_id, body.producer_epoch)
        )

        def build(answered: Answered) -> InitProducerIdResponse:
            response = self.on_error(body, answered.code, None, request.version)
            if answered.code is ErrorCode.NONE:
                response.producer_id, response.producer_epoch = answered.identity
            return response

        self.transactions.run_with_producer_id(
            transactional_id,
            reply_with(request, build, Answered),
            lambda coordinator, ticket, fresh, now_ms: coordinator.initialize(
                ticket, transactional_id, wish, fresh, now_ms
            ),
        )

    @staticmethod
    def on_error(
        _body: InitProducerIdRequest, code: ErrorCode, _message: str | None, version: int
    ) -> InitProducerIdResponse:
        """Return the error that the version knows, without an id."""
        code = as_version_knows(code, version, fenced_from=_PRODUCER_FENCED_FROM)
        return InitProducerIdResponse(
            error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
        )
