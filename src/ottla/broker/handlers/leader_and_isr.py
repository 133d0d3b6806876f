"""LeaderAndIsr (4), version 7: the controller makes this broker leader or follower of partitions.

Between brokers only; see `cluster.orders`.
"""

from dataclasses import dataclass

from ottla.broker.cluster.orders import Orders
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import brokers_only
from ottla.broker.requests.request import RequestContext
from ottla.wire.messages.between_brokers import LeaderAndIsrRequest, LeaderAndIsrResponse


@dataclass(slots=True, eq=False, repr=False)
class LeaderAndIsr(Handler):
    """Serves LeaderAndIsr."""

    api = Api(LeaderAndIsrRequest, LeaderAndIsrResponse, Versions(7, 7), needs=brokers_only)

    orders: Orders

    async def handle(
        self, _request: RequestContext, body: LeaderAndIsrRequest
    ) -> LeaderAndIsrResponse:
        """Take the roles."""
        return await self.orders.leader_and_isr(body)
