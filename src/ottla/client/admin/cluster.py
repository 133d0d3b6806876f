"""The cluster's id, controller and brokers."""

from dataclasses import dataclass

from ottla.client.admin.calls import Calls
from ottla.client.common.arguments import checks_calls
from ottla.client.common.errors import check
from ottla.client.connection.view import BrokerDescription
from ottla.wire.messages.cluster import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """The members of a cluster. `controller_id` is -1 if it is unknown."""

    cluster_id: str | None
    controller_id: int
    brokers: tuple[BrokerDescription, ...]


@checks_calls()
class Brokers:
    """`admin.cluster`: the brokers, the controller, the cluster id."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def describe(self) -> ClusterDescription:
        """Return brokers, controller and id, from any broker."""

        async def ask() -> ClusterDescription:
            await self._calls.cluster.ask_any(MetadataRequest(topics=[]), MetadataResponse)
            await self._calls.cluster.refresh()
            view = self._calls.cluster.view
            brokers = tuple(view.brokers[broker_id] for broker_id in sorted(view.brokers))
            return ClusterDescription(view.cluster_id, view.controller_id, brokers)

        return await self._calls.retried(ask)

    async def brokers(self) -> list[int]:
        """Return the ids of the live brokers."""
        return await self._calls.brokers()

    async def remove_broker(self, broker_id: int) -> None:
        """Forget a broker that is gone for good.

        Raises BrokerRefused BROKER_ID_NOT_REGISTERED, or INVALID_REQUEST if it is alive.
        """
        request = UnregisterBrokerRequest(broker_id=broker_id)
        answer = await self._calls.cluster.ask_any(request, UnregisterBrokerResponse)
        check(answer.error_code, f"remove broker {broker_id}", answer.error_message)
