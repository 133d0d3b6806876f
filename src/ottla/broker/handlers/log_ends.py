"""LogEnds (1002), version 0: the log ends of this broker's replicas without a leader.

Ottla's own, and between brokers only; see `cluster.orders`.
"""

from dataclasses import dataclass

from ottla.broker.cluster.orders import Orders
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import brokers_only
from ottla.broker.requests.request import RequestContext
from ottla.wire.messages.log_ends import LogEndsRequest, LogEndsResponse


@dataclass(slots=True, eq=False, repr=False)
class LogEnds(Handler):
    """Serves LogEnds."""

    api = Api(LogEndsRequest, LogEndsResponse, Versions(0, 0), needs=brokers_only)

    orders: Orders

    def handle(self, _request: RequestContext, body: LogEndsRequest) -> LogEndsResponse:
        """Look at each log."""
        return self.orders.log_ends(body)
