"""ControlledShutdown (7), versions 2-3: moves leadership away from a stopping broker.

Between brokers only. The answer names partitions that could not be moved; the broker may ask again
or stop anyway.
"""

from dataclasses import dataclass

from ottla.base.ids import BrokerId
from ottla.broker.cluster.admission import require_broker
from ottla.broker.controller import Controller
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import brokers_only
from ottla.broker.requests.request import RequestContext
from ottla.wire.messages.between_brokers import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)


@dataclass(slots=True, eq=False, repr=False)
class ControlledShutdown(Handler):
    """Serves ControlledShutdown."""

    api = Api(
        ControlledShutdownRequest, ControlledShutdownResponse, Versions(2, 3), needs=brokers_only
    )

    controller: Controller

    async def handle(
        self, request: RequestContext, body: ControlledShutdownRequest
    ) -> ControlledShutdownResponse:
        """Move leadership away from the sender, first in the store and then on the brokers."""
        require_broker(request, "ControlledShutdown", body.broker_id)
        remaining = await self.controller.shut_down(BrokerId(body.broker_id), body.broker_epoch)
        return ControlledShutdownResponse(
            remaining_partitions=[
                RemainingPartition(topic_name=name.topic, partition_index=name.partition)
                for name in remaining
            ]
        )
