"""How the controller's messages reach brokers: others over their connections, this one directly."""

from typing import TYPE_CHECKING, Any

from ottla.broker.handlers import leader_and_isr, log_ends, stop_replica
from ottla.metadata.image import BrokerImage
from ottla.wire.messages.leader_and_isr import LeaderAndIsrRequest
from ottla.wire.messages.log_ends import LogEndsRequest
from ottla.wire.messages.stop_replica import StopReplicaRequest
from ottla.wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from ottla.wire.notation import Message

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


class Control:
    """Delivers to any broker of the cluster."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    async def deliver(self, receiver: BrokerImage, message: Message) -> Any:
        """Send a message and return its response. Raises OttlaError."""
        if receiver.id == self._broker.broker_id:
            return await self._obey(message)
        return await self._broker.peers.request(receiver.id, message)

    async def answers(self, receiver: BrokerImage, within_s: float) -> bool:
        """Whether a broker answers, over a connection of its own; see `Peers.answers`."""
        if receiver.id == self._broker.broker_id:
            return True
        return await self._broker.peers.answers(receiver, within_s)

    async def reaches(self, receiver: BrokerImage, within_s: float) -> bool:
        """Whether the way to a broker is open; see `Peers.reaches`."""
        if receiver.id == self._broker.broker_id:
            return True
        return await self._broker.peers.reaches(receiver, within_s)

    async def _obey(self, message: Message) -> Message:
        """What the handlers of the same APIs do, without a connection."""
        match message:
            case UpdateMetadataRequest():
                await self._broker.updates.apply(message)
                return UpdateMetadataResponse()
            case LeaderAndIsrRequest():
                return await leader_and_isr.handle(self._broker, None, message)
            case StopReplicaRequest():
                return await stop_replica.handle(self._broker, None, message)
            case LogEndsRequest():
                return log_ends.handle(self._broker, None, message)
        raise AssertionError(f"the controller does not send {type(message).__name__}")
