"""OffsetDelete (47), version 0: forget offsets of topics that no member reads (KIP-496)."""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.groups.answer import WholeAnswer
from ottla.broker.requests.legacy import LegacyHandler
from ottla.broker.requests.request import RequestContext
from ottla.wire.api import ApiKey
from ottla.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


def handle(broker: "Broker", request: RequestContext, body: OffsetDeleteRequest) -> None:
    """Have the group's coordinator decide."""
    if not body.group_id:
        raise OttlaError(ErrorCode.INVALID_GROUP_ID, "a group needs a name")
    image = broker.image

    def exists(topic: str, index: int) -> bool:
        return image.partition(topic, index) is not None

    broker.groups.run(
        body.group_id,
        WholeAnswer(request, body, on_error),
        lambda coordinator, call, at: coordinator.delete_offsets(call, body, exists, at),
    )


def on_error(
    _body: OffsetDeleteRequest, code: ErrorCode, _message: str | None, _version: int
) -> OffsetDeleteResponse:
    """An error for the request as a whole."""
    return OffsetDeleteResponse(error_code=code)


HANDLER = LegacyHandler(ApiKey.OFFSET_DELETE, 0, 0, handle)
