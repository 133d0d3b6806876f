"""Several brokers in one loop, in memory, and a controller played by hand.

The test holds the controller's office, so that who leads what is for the test to say: `elect`
writes the state as a controller would, and sends LeaderAndIsr to the replicas' handlers.
"""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

from ottla.base.ids import BrokerId, TopicPartition
from ottla.base.settings import BrokerSettings
from ottla.broker.broker import Broker
from ottla.broker.handlers import leader_and_isr, stop_replica
from ottla.broker.registration import prepare
from ottla.coordination.memory import MemoryStore, MemoryTree
from ottla.coordination.store import Create, Set
from ottla.metadata import paths
from ottla.metadata.image import NO_LEADER, Endpoint
from ottla.metadata.loader import load_image
from ottla.metadata.nodes import encode_partition
from ottla.metadata.topic_plan import NewTopic
from ottla.replica.standing import Standing
from ottla.storage.memory_filesystem import MemoryFileSystem
from ottla.wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from ottla.wire.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)

from ..broker.broker_client import Client

PATIENCE_S = 30
LAG_MS = 400
# A controller that no broker can be.
HAND = 99


class Cluster:
    """Brokers by id, from 1 on."""

    def __init__(self, settings):
        self.settings = settings
        self.tree = MemoryTree()
        self.store = MemoryStore(self.tree)
        self.filesystems = {}
        self.brokers = {}
        self.epochs = {}
        self.clients = {}

    async def start(self, count):
        await prepare(self.store)
        session = await self.store.open_session(60_000)
        held = f'{{"version":1,"brokerid":{HAND},"timestamp":"0"}}'.encode()
        await self.store.multi([Create(paths.CONTROLLER, held, session)])
        for broker_id in range(1, count + 1):
            await self.start_broker(broker_id)

    async def start_broker(self, broker_id):
        """Start one, or start it again with what its disk has; roles come with an election."""
        filesystem = self.filesystems.setdefault(broker_id, MemoryFileSystem())
        given = {
            "node.id": str(broker_id),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": "/data",
            "replica.lag.time.max.ms": str(LAG_MS),
            "offsets.topic.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            **self.settings,
        }
        broker = Broker(BrokerSettings(given), filesystem=filesystem, store=MemoryStore(self.tree))
        await broker.start()
        self.brokers[broker_id] = broker
        await self.tell_brokers()
        return broker

    async def tell_brokers(self):
        """Everyone learns who is alive, as by UpdateMetadata, and who it is itself."""
        image = (await self.load()).with_controller(BrokerId(HAND))
        for broker_id, broker in self.brokers.items():
            # The ports were not known when the settings were written.
            ports = {name: Endpoint("127.0.0.1", port) for name, port in broker.ports.items()}
            image = image.with_broker(replace(image.brokers[broker_id], endpoints=ports))
        for broker_id, broker in self.brokers.items():
            epoch = image.brokers[broker_id].epoch
            if broker.replication.standing.broker_epoch != epoch:
                broker.fence.registered(epoch)
                broker.replication.on_registered(Standing(BrokerId(broker_id), epoch, 9_000))
            broker.image = image
            broker.replication.on_image(image)

    async def load(self):
        return (await load_image(self.store, "x")).image

    async def kill(self, broker_id, *, random=None):
        """End the process; with `random` by a power cut."""
        broker = self.brokers.pop(broker_id)
        client = self.clients.pop(broker_id, None)
        if client is not None:
            client.close()
        self.filesystems[broker_id].crash(random)
        await broker.stop(clean=False)
        await self.tell_brokers()

    async def stop(self):
        for client in self.clients.values():
            client.close()
        for broker in self.brokers.values():
            await broker.stop()

    async def create(self, topic, replicas=(1, 2, 3), partitions=1, configs=None):
        """A topic whose every partition is led by the first of `replicas`."""
        maker = next(iter(self.brokers.values()))
        new = NewTopic(
            topic,
            assignments={index: tuple(replicas) for index in range(partitions)},
            configs=configs or {},
        )
        (outcome,) = await maker.topics.create([new])
        assert outcome.error is None, outcome.error
        await self.tell_brokers()
        for index in range(partitions):
            await self.tell(topic, index)
        return outcome.topic

    async def elect(self, topic, index, leader, *, isr=None):
        """Write a new term into the store and tell the replicas that live."""
        state = (await self.load()).partition(topic, index)
        after = replace(
            state,
            leader=NO_LEADER if leader is None else BrokerId(leader),
            leader_epoch=state.leader_epoch + 1,
            isr=state.isr if isr is None else tuple(BrokerId(b) for b in isr),
            leader_broker_epoch=0,
        )
        path = paths.partition_state(topic, index)
        await self.store.multi([Set(path, encode_partition(after, 0), state.version)])
        await self.tell_brokers()
        await self.tell(topic, index)

    async def tell(self, topic, index, *brokers):
        """Send LeaderAndIsr with the store's state to all replicas, or to some."""
        image = await self.load()
        for broker_id in brokers or list(self.brokers):
            if broker_id in image.partition(topic, index).replicas:
                answer = await self.order(broker_id, image.topics[topic], index)
                assert answer.error_code == 0
                assert answer.topics[0].partition_errors[0].error_code == 0

    async def order(self, broker_id, topic, index, **more):
        state = topic.partitions[index]
        request = LeaderAndIsrRequest(
            controller_id=HAND,
            controller_epoch=more.pop("controller_epoch", 0),
            broker_epoch=more.pop(
                "broker_epoch", self.brokers[broker_id].replication.standing.broker_epoch
            ),
            topic_states=[
                LeaderAndIsrTopicState(
                    topic_name=topic.name,
                    topic_id=topic.id,
                    partition_states=[
                        LeaderAndIsrPartitionState(
                            partition_index=index,
                            leader=state.leader,
                            leader_epoch=state.leader_epoch,
                            isr=list(state.isr),
                            partition_epoch=state.version,
                            replicas=list(state.replicas),
                            elr=list(state.elr),
                            nonce=state.nonce,
                        )
                    ],
                )
            ],
        )
        return await leader_and_isr.handle(self.brokers[broker_id], None, request)

    async def stop_replica(self, broker_id, topic, index, *, delete, leader_epoch=-1):
        request = StopReplicaRequest(
            controller_id=HAND,
            controller_epoch=0,
            broker_epoch=self.brokers[broker_id].replication.standing.broker_epoch,
            topic_states=[
                StopReplicaTopicState(
                    topic_name=topic,
                    partition_states=[
                        StopReplicaPartitionState(
                            partition_index=index,
                            leader_epoch=leader_epoch,
                            delete_partition=delete,
                        )
                    ],
                )
            ],
        )
        return await stop_replica.handle(self.brokers[broker_id], None, request)

    async def client(self, broker_id):
        """One connection per broker."""
        if broker_id not in self.clients:
            self.clients[broker_id] = await Client.connect(self.brokers[broker_id].port)
        return self.clients[broker_id]

    def partition(self, broker_id, topic, index=0):
        return self.brokers[broker_id].partitions.get(topic, index)

    def log(self, broker_id, topic, index=0):
        """The bytes of all segments of a replica, as its disk has them."""
        filesystem = self.filesystems[broker_id]
        folder = f"/data/{TopicPartition(topic, index)}"
        return b"".join(
            filesystem.read_bytes(f"{folder}/{name}")
            for name in filesystem.listdir(folder)
            if name.endswith(".log")
        )

    def ends(self, topic, index=0):
        """Log ends of the replicas that live."""
        found = {}
        for broker_id, broker in self.brokers.items():
            partition = broker.partitions.find(topic, index)
            if partition is not None:
                found[broker_id] = partition.log_end_offset
        return found


async def until(condition):
    """Return when `condition()` holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110  # Nothing tells of it.
            await asyncio.sleep(0.005)


@asynccontextmanager
async def cluster(count=3, settings=None):
    """`count` brokers that know of each other."""
    made = Cluster(settings or {})
    await made.start(count)
    try:
        yield made
    finally:
        await made.stop()


def run(scenario, count=3, settings=None):
    """Run `scenario(cluster)`."""

    async def main():
        async with cluster(count, settings) as made:
            await scenario(made)

    asyncio.run(main())
