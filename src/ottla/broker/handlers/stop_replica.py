"""StopReplica (5), versions 3-4: the controller makes this broker stop replicas.

Between brokers only. With `delete_partition` the log is deleted, too; see `cluster.orders`.
"""

from dataclasses import dataclass

from ottla.broker.cluster.orders import Orders
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import brokers_only
from ottla.broker.requests.request import RequestContext
from ottla.wire.messages.between_brokers import StopReplicaRequest, StopReplicaResponse


@dataclass(slots=True, eq=False, repr=False)
class StopReplica(Handler):
    """Serves StopReplica."""

    api = Api(StopReplicaRequest, StopReplicaResponse, Versions(3, 4), needs=brokers_only)

    orders: Orders

    async def handle(
        self, _request: RequestContext, body: StopReplicaRequest
    ) -> StopReplicaResponse:
        """Stop the partitions."""
        return await self.orders.stop_replica(body)
