"""Where every request of a client is checked, before it is served."""

from typing import Any

from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.admission import proven_broker
from ottla.broker.requests.access import Access
from ottla.broker.requests.check import OnError, RequestCheck
from ottla.broker.requests.needs import DeniedAnswer, Guard
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.network.connection import Connection
from ottla.security.authorizer import Authorizer


class Gate:
    """The checks of a broker that has an authorizer."""

    def __init__(self, authorizer: Authorizer, view: ClusterView, settings: BrokerSettings) -> None:
        self._authorizer = authorizer
        self._view = view
        self._settings = settings

    def access(self, connection: Connection) -> Access:
        """What the client of a new connection may do, by the newest rules."""
        return Access(self._authorizer, connection)

    def admit(
        self,
        access: Access,
        request: RequestContext,
        body: Any,
        needs: Guard[Any, Any],
        on_error: OnError,
    ) -> DeniedAnswer | None:
        """Check a request. Takes out of the body what is denied; `request.amend` answers that.

        Returns the response where nothing is left to serve. Raises OttlaError where the request
        is denied as a whole. Other brokers, which know the cluster's secret, may do everything.
        """
        if proven_broker(request.connection) is not None:
            return None
        request.access = access
        check = RequestCheck(access, self._view.image, self._settings, request, body, on_error)
        try:
            found = needs(check)
        finally:
            check.end()
        if isinstance(found, DeniedAnswer):
            return found
        request.amend = found
        return None
