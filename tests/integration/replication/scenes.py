"""What tests of replication do with a cluster: write, read, compare, wait."""

import asyncio
from contextlib import asynccontextmanager

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.record.reader import batches, records
from ottla.testing.cluster import Cluster
from tests.integration.broker.broker_client import Client, batch, fetch, fetched, produce, produced

# Settings of a topic that goes on with whoever is there.
UNCLEAN = {"unclean_leader_election_enable": "true", "min_insync_replicas": "1"}


class Scene:
    """A cluster, and a connection to each of its brokers."""

    def __init__(self, cluster):
        self.cluster = cluster
        self._clients = {}

    async def client(self, broker_id):
        broker = self.cluster.brokers[broker_id]
        client = self._clients.get(broker)
        if client is None:
            client = self._clients[broker] = await Client.connect(broker.port)
        return client

    async def write(self, broker_id, topic, *values, acks=-1, version=11, timeout_ms=100_000):
        """Produce one batch to one broker, whoever leads; the answer for the partition."""
        request = produce(topic, batch(*values, timestamp=1_000), acks=acks, timeout_ms=timeout_ms)
        return produced(await (await self.client(broker_id)).call(request, version))

    async def read(self, broker_id, topic, offset=0, **more):
        """Fetch from one broker; the answer for the partition."""
        version = more.pop("version", 12)
        request = fetch(topic, offset, **more)
        return fetched(await (await self.client(broker_id)).call(request, version))

    async def create(self, topic, *replicas, **settings):
        """A topic of one partition led by the first of `replicas`, all of them in their roles."""
        named = {name.replace("_", "."): value for name, value in settings.items()}
        await self.cluster.create_topic(topic, settings=named, assignments={0: list(replicas)})
        await self.cluster.until(
            lambda: (
                self.partition(replicas[0], topic).leader is not None
                and all(self.partition(b, topic).follower is not None for b in replicas[1:])
            )
        )

    def partition(self, broker_id, topic):
        return self.cluster.brokers[broker_id].partitions.get(topic, 0)

    def ends(self, topic):
        """Log ends by broker, of those that run and have a replica."""
        found = {}
        for broker_id, broker in self.cluster.brokers.items():
            partition = broker.partitions.find(topic, 0)
            if partition is not None:
                found[broker_id] = partition.log_end_offset
        return found

    def marks(self, topic):
        """High watermarks, likewise."""
        return {b: self.partition(b, topic).high_watermark for b in self.ends(topic)}

    def log(self, broker_id, topic):
        """The bytes of all segments of a replica, as its disk has them."""
        broker = self.cluster.brokers[broker_id]
        folder = f"/data/{TopicPartition(topic, 0)}"
        return b"".join(
            broker.storage.filesystem.read_bytes(f"{folder}/{name}")
            for name in broker.storage.filesystem.listdir(folder)
            if name.endswith(".log")
        )

    def isr(self, topic):
        """The ISR in the image of whoever runs, None while they differ."""
        state = self.cluster.state(topic)
        return None if state is None else set(state.isr)

    def close(self):
        for client in self._clients.values():
            client.close()


def values(answer):
    """The values of the records in an answer."""
    buffer = bytes(answer.records or b"")
    return [
        record.value
        for position, header in batches(buffer)
        for record in records(buffer, position, header)
    ]


@asynccontextmanager
async def scene(count=3, settings=None, **more):
    """A cluster of `count` brokers; `faults` makes what goes wrong with their store."""
    faults = more.pop("faults", None)
    async with Cluster(count, settings, faults=faults and faults(), **more) as cluster:
        made = Scene(cluster)
        try:
            yield made
        finally:
            made.close()


def play(scenario, count=3, settings=None, **more):
    """Run `scenario(scene)`."""

    async def main():
        async with scene(count, settings, **more) as made:
            await scenario(made)

    asyncio.run(main())


async def get_ahead(scene):
    """Broker 1 leads "a" with six records, of which 2, which is dead now, has the first three."""
    await scene.create("a", 1, 2, **UNCLEAN)
    for number in range(3):
        assert (await scene.write(1, "a", b"%d" % number)).error_code == ErrorCode.NONE
    await scene.cluster.until(lambda: scene.ends("a") == {1: 3, 2: 3})
    await scene.cluster.kill(2)
    await scene.cluster.until(lambda: scene.partition(1, "a").image.isr == (1,))
    for number in range(3, 6):
        assert (await scene.write(1, "a", b"%d" % number)).error_code == ErrorCode.NONE
