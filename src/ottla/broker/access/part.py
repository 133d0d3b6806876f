"""The authorization part of a broker: the ACLs, and the check before each request."""

from dataclasses import dataclass
from typing import Any

from ottla.base.clock import Clock
from ottla.base.settings import BrokerSettings
from ottla.broker.access.acls import Acls, new_authorizer
from ottla.broker.cluster.admission import proven_broker
from ottla.broker.requests.access import Access
from ottla.broker.requests.check import OnError, RequestCheck
from ottla.broker.requests.needs import DeniedAnswer, Guard
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.part import BrokerPart
from ottla.broker.runtime.view import ClusterView
from ottla.coordination.interface.store import Store
from ottla.network.connection import Connection
from ottla.security.authorizer import Authorizer


class Gate:
    """Checks the requests of clients, on a broker that has an authorizer."""

    def __init__(self, authorizer: Authorizer, view: ClusterView, settings: BrokerSettings) -> None:
        self._authorizer = authorizer
        self._view = view
        self._settings = settings

    def access(self, connection: Connection) -> Access:
        """Return the permissions of a new connection's client, always by the newest ACLs."""
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

        Removes the denied items from the body; `request.amend` adds their errors to the response.
        Returns the response if no item is left. Raises OttlaError if the whole request is denied.
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


@dataclass(frozen=True, slots=True)
class AccessStatus:
    """Reports whether there is an authorizer, and the number of ACLs."""

    has_authorizer: bool
    acls: int


class AccessPart(BrokerPart):
    """Authorization. All attributes are None if the settings name no authorizer."""

    def __init__(
        self, settings: BrokerSettings, clock: Clock, view: ClusterView, store: Store
    ) -> None:
        self.authorizer = authorizer = new_authorizer(settings)
        self.acls = None if authorizer is None else Acls(store, clock, authorizer)
        self.gate = None if authorizer is None else Gate(authorizer, view, settings)

    def status(self) -> AccessStatus:
        rules = () if self.authorizer is None else self.authorizer.rules
        return AccessStatus(self.authorizer is not None, sum(1 for _ in rules))
