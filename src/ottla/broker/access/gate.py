"""Where every request of a client is checked, before it is served."""

from typing import Any

from ottla.base.settings import BrokerSettings
from ottla.broker.access.check import RequestCheck
from ottla.broker.access.guards import DeniedAnswer
from ottla.broker.access.table import guards
from ottla.broker.cluster.admission import proven_broker
from ottla.broker.requests.access import Access
from ottla.broker.requests.handler import OnError
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.network.connection import Connection
from ottla.security.authorizer import Authorizer
from ottla.security.names import CLUSTER_NAME, AclOperation, AclResource


class Gate:
    """The checks of a broker that has an authorizer."""

    def __init__(self, authorizer: Authorizer, view: ClusterView, settings: BrokerSettings) -> None:
        self._authorizer = authorizer
        self._view = view
        self._guards = guards(settings)

    def access(self, connection: Connection) -> Access:
        """What the client of a new connection may do, by the newest rules."""
        return Access(self._authorizer, connection)

    def admit(
        self, access: Access, request: RequestContext, body: Any, on_error: OnError
    ) -> DeniedAnswer | None:
        """Check a request. Takes out of the body what is denied; `request.amend` answers that.

        Returns the response where nothing is left to serve. Raises OttlaError where the request
        is denied as a whole. Other brokers, which know the cluster's secret, may do everything.
        """
        if proven_broker(request.connection) is not None:
            return None
        request.access = access
        guard = self._guards.get(request.header.api_key)
        check = RequestCheck(access, self._view.image, request, body, on_error)
        if guard is None:
            raise check.denial(AclOperation.CLUSTER_ACTION, AclResource.CLUSTER, CLUSTER_NAME)
        found = guard(check)
        if isinstance(found, DeniedAnswer):
            return found
        request.amend = found
        return None
