"""InitProducerId (22), versions 0-5: a producer id for an idempotent producer.

A transactional id is refused with INVALID_REQUEST: transactions are not there yet, and this code
is final for every client, where a coordinator's error would be retried until a timeout.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ottla.broker.handler import Handler
from ottla.broker.request import RequestContext
from ottla.wire.api import ApiKey
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


async def handle(
    broker: "Broker", _request: RequestContext, body: InitProducerIdRequest
) -> InitProducerIdResponse:
    """A new producer id in epoch 0: an idempotent producer never resumes an old one (KIP-360)."""
    if body.transactional_id is not None:
        what = body.transactional_id or "the empty transactional id"
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"transactions are not supported yet ({what}); leave transactional.id unset: the "
            "producer stays idempotent",
        )
    if (body.producer_id == NO_PRODUCER_ID) != (body.producer_epoch == NO_PRODUCER_EPOCH):
        raise OttlaError(
            ErrorCode.INVALID_REQUEST, "a producer id and its epoch must be given together"
        )
    producer_id = broker.producer_ids.take()
    if producer_id is None:
        producer_id = await broker.producer_ids.reserve()
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def on_error(
    _body: InitProducerIdRequest, code: ErrorCode, _message: str | None, _version: int
) -> InitProducerIdResponse:
    """The error, and no id."""
    return InitProducerIdResponse(
        error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )


HANDLER = Handler(ApiKey.INIT_PRODUCER_ID, 0, 5, handle)
