"""Sends the controller's messages: over connections, or directly to this very broker."""

from typing import Any

from ottla.base.ids import BrokerId
from ottla.broker.cluster.orders import Orders
from ottla.broker.cluster.peers import Peers
from ottla.metadata.image import BrokerImage
from ottla.wire.messages.between_brokers import (
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from ottla.wire.messages.offset_ledger import LogEndsRequest
from ottla.wire.notation import Message


class Control:
    """Delivers to any broker of the cluster."""

    def __init__(self, broker_id: BrokerId, peers: Peers, orders: Orders) -> None:
        self._broker_id = broker_id
        self._peers = peers
        self._orders = orders

    async def deliver(self, receiver: BrokerImage, message: Message) -> Any:
        """Send a message and return its response. Raises OttlaError."""
        if receiver.id == self._broker_id:
            return await self._apply(message)
        return await self._peers.request(receiver.id, message)

    async def answers(self, receiver: BrokerImage, within_s: float) -> bool:
        """Whether a broker answers, over a connection of its own; see `Peers.answers`."""
        if receiver.id == self._broker_id:
            return True
        return await self._peers.answers(receiver, within_s)

    async def reaches(self, receiver: BrokerImage, within_s: float) -> bool:
        """Whether a connection to a broker can be opened; see `Peers.reaches`."""
        if receiver.id == self._broker_id:
            return True
        return await self._peers.reaches(receiver, within_s)

    async def _apply(self, message: Message) -> Message:
        """Carry out a controller request in this process."""
        match message:
            case UpdateMetadataRequest():
                return await self._orders.update_metadata(message)
            case LeaderAndIsrRequest():
                return await self._orders.leader_and_isr(message)
            case StopReplicaRequest():
                return await self._orders.stop_replica(message)
            case LogEndsRequest():
                return self._orders.log_ends(message)
        raise AssertionError(f"the controller does not send {type(message).__name__}")
