"""AddOffsetsToTxn (25), versions 0-4: announces that a transaction will commit offsets of a group.

It adds the group's partition of `__consumer_offsets` to the transaction. From version 2 on a fenced
producer gets PRODUCER_FENCED.
"""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.broker.groups import Groups
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import all_of, resource
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.topics.internal_topics import CONSUMER_OFFSETS
from ottla.broker.topics.topics import Topics
from ottla.broker.transactions import Transactions
from ottla.broker.transactions.answer import as_version_knows, reply_with
from ottla.security.names import AclOperation, AclResource
from ottla.transaction.transaction import ProducerIdentity
from ottla.transaction.turn import Answered
from ottla.wire.messages.transactions import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

_PRODUCER_FENCED_FROM = 2
_CLIENT_VERSION = 1


@dataclass(slots=True, eq=False, repr=False)
class AddOffsetsToTxn(Handler):
    """Serves AddOffsetsToTxn."""

    api = Api(
        AddOffsetsToTxnRequest,
        AddOffsetsToTxnResponse,
        Versions(0, 4),
        needs=all_of(
            resource(
                AclOperation.WRITE, AclResource.TRANSACTIONAL_ID, lambda body: body.transactional_id
            ),
            resource(AclOperation.READ, AclResource.GROUP, lambda body: body.group_id),
        ),
    )

    runtime: Runtime
    groups: Groups
    transactions: Transactions
    topics: Topics

    def handle(
        self, request: RequestContext, body: AddOffsetsToTxnRequest
    ) -> AddOffsetsToTxnResponse | None:
        """Have the transaction's coordinator add the partition that holds the group's offsets."""
        if not body.transactional_id:
            raise OttlaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        index = self.groups.partition_index(body.group_id)
        if index is None:
            self.runtime.spawn(self._create_offsets(request, body))
        else:
            self._add(request, body, index)
        return None

    async def _create_offsets(self, request: RequestContext, body: AddOffsetsToTxnRequest) -> None:
        """Create `__consumer_offsets`: no client has looked up a group's coordinator yet."""
        try:
            await self.topics.auto_create(CONSUMER_OFFSETS)
        except OttlaError as error:
            request.reply(self.on_error(body, error.code, error.message, request.version))
            return
        index = self.groups.partition_index(body.group_id)
        assert index is not None
        self._add(request, body, index)

    def _add(self, request: RequestContext, body: AddOffsetsToTxnRequest, index: int) -> None:
        def build(answered: Answered) -> AddOffsetsToTxnResponse:
            return self.on_error(body, answered.code, None, request.version)

        self.transactions.run(
            body.transactional_id,
            reply_with(request, build, Answered),
            lambda coordinator, ticket, now_ms: coordinator.add(
                ticket,
                body.transactional_id,
                ProducerIdentity(body.producer_id, body.producer_epoch),
                frozenset({TopicPartition(CONSUMER_OFFSETS, index)}),
                _CLIENT_VERSION,
                now_ms,
            ),
        )

    @staticmethod
    def on_error(
        _body: AddOffsetsToTxnRequest, code: ErrorCode, _message: str | None, version: int
    ) -> AddOffsetsToTxnResponse:
        """Return the error code that clients of the request's version know."""
        code = as_version_knows(code, version, fenced_from=_PRODUCER_FENCED_FROM)
        return AddOffsetsToTxnResponse(error_code=code)
