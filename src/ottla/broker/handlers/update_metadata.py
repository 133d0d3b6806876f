"""UpdateMetadata (6), versions 5-8: the controller tells who is alive and who leads what.

Between brokers only. The image that clients see changes by nothing else.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode
from ottla.broker.requests.admission import require_broker
from ottla.broker.requests.legacy import LegacyHandler
from ottla.broker.requests.request import RequestContext
from ottla.wire.api import ApiKey
from ottla.wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


async def handle(
    broker: "Broker", request: RequestContext, body: UpdateMetadataRequest
) -> UpdateMetadataResponse:
    """Apply it whole, or refuse it."""
    require_broker(request, "UpdateMetadata", body.controller_id)
    await broker.updates.apply(body)
    return UpdateMetadataResponse()


def on_error(
    _body: UpdateMetadataRequest, code: ErrorCode, _message: str | None, _version: int
) -> UpdateMetadataResponse:
    """The error."""
    return UpdateMetadataResponse(error_code=code)


HANDLER = LegacyHandler(ApiKey.UPDATE_METADATA, 5, 8, handle)
