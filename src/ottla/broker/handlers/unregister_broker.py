"""UnregisterBroker (64), version 0: forgets a broker that is gone for good.

New internal topics then get no replicas on it. Its existing replicas stay assigned until they are
moved; it is known again as soon as it registers. The request is refused for a live broker.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from ottla.base.ids import BrokerId
from ottla.broker.cluster.registration import remove
from ottla.broker.requests.auditing import AdminChange, cluster_need
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import cluster
from ottla.broker.requests.request import RequestContext
from ottla.coordination.interface.store import Store
from ottla.security.names import AclOperation
from ottla.wire.messages.cluster import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

_log = logging.getLogger(__name__)


def _changes(
    body: UnregisterBrokerRequest, response: UnregisterBrokerResponse
) -> Iterator[AdminChange]:
    """Return the audit line."""
    detail = {"unregistered": body.broker_id}
    yield AdminChange((cluster_need(AclOperation.ALTER),), detail, response.error_code)


@dataclass(slots=True, eq=False, repr=False)
class UnregisterBroker(Handler):
    """Serves UnregisterBroker."""

    api = Api(
        UnregisterBrokerRequest,
        UnregisterBrokerResponse,
        Versions(0, 0),
        needs=cluster(AclOperation.ALTER),
        changes=_changes,
    )

    store: Store

    async def handle(
        self, _request: RequestContext, body: UnregisterBrokerRequest
    ) -> UnregisterBrokerResponse:
        """Forget the broker. Raises OttlaError."""
        await remove(self.store, BrokerId(body.broker_id))
        _log.info("broker %d was removed from the cluster", body.broker_id)
        return UnregisterBrokerResponse(error_message=None)
