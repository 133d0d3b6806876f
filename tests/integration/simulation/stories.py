"""What stories of three simulated brokers stand on."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import ottla.testing
from ottla.broker.partitions.partition import Partition
from ottla.client import (
    Consumer,
    ConsumerOptions,
    Producer,
    ProducerOptions,
    TopicPartition,
)
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.machine.machine import PORT
from ottla.testing.simulation.network.transport import TransportEndpoint

Story = Callable[[SimulatedCluster], Awaitable[None]]
SETTINGS = {
    "min.insync.replicas": "2",
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
FAST = ProducerOptions(
    request_timeout_ms=1_000,
    delivery_timeout_ms=10_000,
    retry_backoff_ms=20,
    retry_backoff_max_ms=200,
)
NAME = TopicPartition("t", 0)
# Whatever happened, so soon nothing is open any more.
ENDED_S = 20.0
# A story that lasts longer does not end.
_STORY_S = 300.0


def play(story: Story, seed: int = 1) -> None:
    """Let the story happen in a cluster of its own. Raises what the story finds wrong."""

    async def whole() -> None:
        async with ottla.testing.simulate(3, SETTINGS) as cluster, asyncio.timeout(_STORY_S):
            cluster._world.network.obeys_late = True
            await cluster.create_topic("t")
            await story(cluster)

    ottla.testing.run_virtual(whole(), seed)


def producer_of(cluster: SimulatedCluster, version: int = 2, **options: int) -> Producer:
    """A transactional producer; of `version` 1 its epoch stays from one transaction to the next."""
    return Producer(
        cluster.bootstrap, transactional_id="id", **FAST, transaction_version_max=version, **options
    )


def patient_producer_of(cluster: SimulatedCluster) -> Producer:
    """One whose requests wait longer than it takes a silent follower to leave an ISR."""
    options = {**FAST, "request_timeout_ms": FAST["delivery_timeout_ms"]}
    return Producer(cluster.bootstrap, transactional_id="id", **options)


def leader_of(cluster: SimulatedCluster, topic: str) -> int:
    """The leader of a topic's first partition, as the store has it."""
    leader: int = _state(cluster, topic)["leader"]
    return leader


def in_sync(cluster: SimulatedCluster, topic: str) -> list[int]:
    """Who is in sync with it."""
    members: list[int] = _state(cluster, topic)["isr"]
    return members


def _state(cluster: SimulatedCluster, topic: str) -> Any:
    entry = cluster._world.tree.entries[f"/brokers/topics/{topic}/partitions/0/state"]
    return json.loads(entry.data)


def copy_on(cluster: SimulatedCluster, broker: int, name: TopicPartition = NAME) -> Partition:
    """A broker's copy of a partition."""
    running = cluster._world.machines[broker].broker
    assert running is not None
    return running.partitions.get(*name)


async def until(condition: Callable[[], bool]) -> None:
    """Look every half millisecond: nothing tells of it."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.0005)


def hold_up(
    cluster: SimulatedCluster, broker: int, source: int | str = "user"
) -> list[TransportEndpoint]:
    """Let nothing arrive that `source` (a broker, or the clients) sends on connections to `broker`.

    Those that it has opened, and has now.
    """
    host = source if source == "user" else f"b{source}"
    network = cluster._world.network
    found = [
        endpoint
        for endpoint in network.endpoints_of(host)
        if endpoint.get_extra_info("peername") == (f"b{broker}", PORT)
    ]
    assert found
    for endpoint in found:
        endpoint.stall()
    return found


async def until_stable(cluster: SimulatedCluster) -> int:
    """Wait until nothing is open; return the end, fail where something stays open."""
    async with (
        Consumer(
            cluster.bootstrap, request_timeout_ms=1_000, isolation_level="read_committed"
        ) as consumer,
        Consumer(cluster.bootstrap, request_timeout_ms=1_000) as other,
    ):
        for _ in range(int(ENDED_S * 10)):
            end = (await consumer.end_offsets([NAME]))[NAME]
            if end == (await other.end_offsets([NAME]))[NAME]:
                return end
            await asyncio.sleep(0.1)
    raise AssertionError(f"a transaction stays open at offset {end}")


async def committed(cluster: SimulatedCluster) -> list[bytes | None]:
    """What readers of committed records see, once nothing is open; fails where something is."""
    end = await until_stable(cluster)
    found: list[bytes | None] = []
    options = ConsumerOptions(request_timeout_ms=1_000, isolation_level="read_committed")
    async with Consumer(cluster.bootstrap, **options) as consumer:
        await consumer.assign([NAME])
        while await consumer.position(NAME) < end:
            for batch in (await consumer.poll(0.5)).by_partition:
                found += [record.value for record in batch.records]
    return found
