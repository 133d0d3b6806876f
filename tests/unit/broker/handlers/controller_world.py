"""A controller of broker 1 over a store in memory, and brokers that obey all it orders."""

import asyncio
from uuid import UUID

from ottla.base.ids import BrokerId, TopicId
from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.registration import prepare, register
from ottla.broker.controller import Controller
from ottla.broker.topics.operations import creation
from ottla.controller.election import Rules
from ottla.coordination.memory.memory import MemoryStore, MemoryTree
from ottla.metadata.decisions import Decisions
from ottla.metadata.image import BrokerImage, PartitionImage, TopicImage
from ottla.metadata.loader import load_topics
from ottla.testing.clock import ManualClock
from ottla.wire.messages.between_brokers import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataResponse,
)

from .replica_world import SETTINGS


class ControllerWorld:
    """Broker 1 is controller once `begin` was called; until then there is none."""

    def __init__(self):
        self._tree = MemoryTree()
        self.store = MemoryStore(self._tree, name="broker 1")
        self._others = []
        # Those that answer nothing.
        self.silent = set()
        # The topics of each LeaderAndIsr to a broker, in the order of their sending.
        self.sent = []
        self.controller = Controller(
            self.store,
            BrokerId(1),
            BrokerSettings(SETTINGS),
            ManualClock(),
            Decisions(),
            lambda _topic: Rules(min_isr=1),
            self._deliver,
            self._answers,
            self._answers,
            lambda: None,
        )

    async def _deliver(self, broker, message):
        match message:
            case LeaderAndIsrRequest():
                self.sent.append((broker.id, [each.topic_name for each in message.topic_states]))
                return LeaderAndIsrResponse()
            case StopReplicaRequest():
                return StopReplicaResponse()
        return UpdateMetadataResponse()

    async def _answers(self, broker, _within_s):
        return broker.id not in self.silent

    async def broker(self, broker_id):
        """Register a broker; its session, whose end is the broker's."""
        store = MemoryStore(self._tree, name=f"broker {broker_id}")
        self._others.append(store)
        session = await store.open_session(18_000)
        await register(store, session, BrokerImage(BrokerId(broker_id), {}), 0)
        return session

    async def death(self, broker_id):
        """End a broker's session."""
        await self._others.pop(broker_id - 1).close()

    async def topic(self, name, number, *, leader, replicas, isr):
        """A topic of one partition."""
        state = PartitionImage(
            leader=BrokerId(leader),
            leader_epoch=4,
            replicas=tuple(replicas),
            isr=tuple(isr),
            leader_broker_epoch=1,
        )
        image = TopicImage(name, TopicId(UUID(int=number)), (state,))
        await self.store.multi(creation(image))

    async def state(self, name):
        """The topic's partition as the store has it."""
        return (await load_topics(self.store, [name]))[name].partitions[0]

    async def begin(self):
        """Win the election."""
        await self.controller.stand(await self.store.open_session(18_000))
        assert self.controller.controller_id == 1

    async def close(self):
        await self.controller.stop()
        for store in (*self._others, self.store):
            await store.close()


def play(scenario):
    """Run `scenario(world)` with brokers 1, 2 and 3."""

    async def main():
        world = ControllerWorld()
        await prepare(world.store)
        for broker_id in (1, 2, 3):
            await world.broker(broker_id)
        try:
            await scenario(world)
        finally:
            await world.close()

    asyncio.run(asyncio.wait_for(main(), 120))
