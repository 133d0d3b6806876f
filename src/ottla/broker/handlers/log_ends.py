"""LogEnds (1002), version 0: returns the log end offsets of replicas here without a leader.

An API of Ottla, between brokers only; see `cluster.orders`.
"""

from dataclasses import dataclass

from ottla.broker.cluster.orders import Orders
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import brokers_only
from ottla.broker.requests.request import RequestContext
from ottla.wire.messages.offset_ledger import LogEndsRequest, LogEndsResponse


@dataclass(slots=True, eq=False, repr=False)
class LogEnds(Handler):
    """Serves LogEnds."""

    api = Api(LogEndsRequest, LogEndsResponse, Versions(0, 0), needs=brokers_only)

    orders: Orders

    def handle(self, _request: RequestContext, body: LogEndsRequest) -> LogEndsResponse:
        """Read the end of each log."""
        return self.orders.log_ends(body)
