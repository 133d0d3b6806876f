"""UpdateMetadata (6), versions 5-8: the controller sends the live brokers, topics and leaders.

Between brokers only. Nothing else changes the image that clients see; see `cluster.orders`.
"""

from dataclasses import dataclass

from ottla.broker.cluster.admission import require_broker
from ottla.broker.cluster.orders import Orders
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import brokers_only
from ottla.broker.requests.request import RequestContext
from ottla.wire.messages.between_brokers import UpdateMetadataRequest, UpdateMetadataResponse


@dataclass(slots=True, eq=False, repr=False)
class UpdateMetadata(Handler):
    """Serves UpdateMetadata."""

    api = Api(UpdateMetadataRequest, UpdateMetadataResponse, Versions(5, 8), needs=brokers_only)

    orders: Orders

    async def handle(
        self, request: RequestContext, body: UpdateMetadataRequest
    ) -> UpdateMetadataResponse:
        """Apply the whole update, or refuse it."""
        require_broker(request, "UpdateMetadata", body.controller_id)
        return await self.orders.update_metadata(body)
