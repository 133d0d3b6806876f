"""Checks every client request before it is served."""

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
    """The request checks of a broker that has an authorizer."""

    def __init__(self, authorizer: Authorizer, view: ClusterView, settings: BrokerSettings) -> None:
        self._authorizer = authorizer
        self._view = view
        self._settings = settings

    def access(self, connection: Connection) -> Access:
        """Return the permissions of the client of a new connection, always by the newest ACLs."""
        return Access(self._authorizer, connection)

    def admit(
        self,
        access: Access,
        request: RequestContext,
        body: Any,
        needs: Guard[Any, Any],
        on_error: OnError,
    ) -> DeniedAnswer | None:
        """Check a request.

        Removes the denied items from the body; `request.amend` adds their errors. Returns the
        response if nothing is left to serve. Raises OttlaError if the whole request is denied.
        Other brokers, which know the cluster's secret, are allowed everything.
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
