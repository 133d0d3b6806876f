"""Several brokers that share a store, in one event loop: for tests of clusters.

    async with Cluster(3) as cluster:
        await cluster.create_topic("flights", partitions=2, replicas=3)
        await cluster.kill(1)
        await cluster.until(lambda: cluster.leader("flights", 0) not in (None, 1))

Everything is in memory. A broker that is killed loses its session and its connections, but keeps
its disk; `restart` starts it again.
"""

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from ottla.base.clock import Clock, SystemClock
from ottla.base.settings import BrokerSettings
from ottla.broker.process.broker import Broker
from ottla.coordination.memory.faults import StoreFaults
from ottla.coordination.memory.memory import MemoryStore, MemoryTree
from ottla.metadata.image import NO_LEADER, PartitionImage
from ottla.metadata.topic_plan import RequestedTopic
from ottla.storage.disk.memory_filesystem import MemoryFileSystem

_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "log.dirs": "/data",
    "listeners": "PLAINTEXT://127.0.0.1:0",
    # `kill` ends a broker's session at once. A pause of the machine must not make another broker
    # expire or leave an ISR, so these times are long.
    "broker.session.timeout.ms": "60000",
    "replica.lag.time.max.ms": "120000",
}
_PATIENCE_S = 120.0
_POLL_S = 0.002


class Cluster:
    """Brokers 1 to `count`, all with the same `settings`. `racks` has racks by broker id."""

    def __init__(
        self,
        count: int,
        settings: Mapping[str, str] | None = None,
        *,
        racks: Mapping[int, str] | None = None,
        faults: StoreFaults | None = None,
        clocks: Mapping[int, Clock] | None = None,
    ) -> None:
        self.tree = MemoryTree()
        # Faults between the brokers and the store. A client of the store is named by its broker id.
        self._faults = faults
        # Running brokers by id.
        self.brokers: dict[int, Broker] = {}
        self._ids = range(1, count + 1)
        self._settings = {**_SETTINGS, **(settings or {})}
        self._racks = dict(racks or {})
        self._clocks = dict(clocks or {})
        machine = SystemClock()
        self._disks = {
            broker_id: MemoryFileSystem(now_ms=self._clocks.get(broker_id, machine).now_ms)
            for broker_id in self._ids
        }

    async def __aenter__(self) -> Self:
        try:
            for broker_id in self._ids:
                await self.restart(broker_id)
            # Wait until every broker knows all others.
            await self.until(
                lambda: all(len(b.image.brokers) == len(self._ids) for b in self.brokers.values())
            )
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Stop all brokers without moving leaderships, because the cluster is no longer needed."""
        for broker_id in list(self.brokers):
            await self.kill(broker_id)

    async def restart(self, broker_id: int) -> Broker:
        """Start a broker that was killed or shut down, on its old disk."""
        assert broker_id not in self.brokers
        settings = {**self._settings, "node.id": str(broker_id)}
        if broker_id in self._racks:
            settings["broker.rack"] = self._racks[broker_id]
        broker = Broker(
            BrokerSettings(settings),
            clock=self._clocks.get(broker_id),
            filesystem=self._disks[broker_id],
            store=MemoryStore(self.tree, name=str(broker_id), faults=self._faults),
        )
        await broker.start()
        self.brokers[broker_id] = broker
        return broker

    async def kill(self, broker_id: int) -> None:
        """End a broker as kill -9 does: it flushes nothing and notifies no other broker."""
        broker = self.brokers.pop(broker_id)
        await broker.parts.cluster.membership.leave()
        await broker.stop(clean=False)
        await broker.storage.store.close()

    async def shut_down(self, broker_id: int) -> None:
        """Make a controlled shutdown of a broker: its leaderships move to other brokers first."""
        broker = self.brokers.pop(broker_id)
        await broker.stop()
        await broker.storage.store.close()

    async def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replicas: int = 1,
        settings: Mapping[str, str] | None = None,
        *,
        assignments: Mapping[int, list[int]] | None = None,
    ) -> None:
        """Create a topic; return when all brokers agree on its metadata. Raises OttlaError."""
        counts = (-1, -1) if assignments else (partitions, replicas)
        new = RequestedTopic(name, *counts, assignments, dict(settings or {}))
        (outcome,) = await self.any.parts.metadata.topics.create([new])
        if outcome.error is not None:
            raise outcome.error
        await self.until(lambda: all(name in b.image.topics for b in self.brokers.values()))
        indexes = range(len(self.any.image.topics[name].partitions))
        await self.until(lambda: all(self.state(name, index) is not None for index in indexes))

    @property
    def any(self) -> Broker:
        """Return any running broker."""
        return self.brokers[min(self.brokers)]

    @property
    def controller(self) -> Broker | None:
        """Return the broker that is controller; None if there is none at the moment."""
        found = [broker for broker in self.brokers.values() if broker.parts.controller.is_active]
        return max(found, key=lambda b: b.parts.controller.epoch or 0) if found else None

    def state(self, topic: str, index: int = 0) -> PartitionImage | None:
        """Return a partition's state if all running brokers agree on it, else None."""
        seen = [broker.image.partition(topic, index) for broker in self.brokers.values()]
        return seen[0] if all(image == seen[0] for image in seen) else None

    def leader(self, topic: str, index: int = 0) -> int | None:
        """Return a partition's leader if all running brokers agree on it, else None."""
        state = self.state(topic, index)
        return None if state is None or state.leader == NO_LEADER else state.leader

    async def until(self, condition: Callable[[], bool], timeout_s: float = _PATIENCE_S) -> None:
        """Wait until `condition` is true. A TimeoutError means that something is broken."""
        async with asyncio.timeout(timeout_s):
            while not condition():  # noqa: ASYNC110  # Not every change has an event.
                await asyncio.sleep(_POLL_S)
