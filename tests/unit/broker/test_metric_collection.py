"""What a collection remembers from one look at the statuses to the next."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from ottla.broker.canary.canary import CanaryStatus, Latency
from ottla.broker.lags.group_lags import LagsStatus
from ottla.broker.metrics.collection import Collection
from ottla.broker.partitions.replica_status import ReplicaStatus
from ottla.broker.process.storage import DirectoryStatus
from ottla.testing.clock import ManualClock

REPLICA = ReplicaStatus(
    "t", 0, True, False, 1, 4, 1, 1, 0, 10, 10, 500, 1, True, False, 1, 10, 10, 500, 2, 0, 0, 0, 0
)  # fmt: skip
DISK = DirectoryStatus("/data", 1, 1_000_000, 600_000, 100_000)


class AnyStatus:
    """A status that is 0 in every respect that a test does not name."""

    def __init__(self, **figures: object) -> None:
        self.__dict__.update(figures)

    def __getattr__(self, name: str) -> Any:
        return AnyStatus(loading=0) if name == "shards" else () if name == "failed" else 0


class World:
    """A collection over statuses that the test sets."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.replicas: tuple[ReplicaStatus, ...] = ()
        self.disk = DISK
        self.refreshed = 0
        self.collection = Collection(1, self.parts, self.refresh, self.clock, lambda: 0.0)

    async def refresh(self) -> None:
        self.refreshed += 1

    def parts(self) -> dict[str, Any]:
        statuses = self.statuses()
        return {name: SimpleNamespace(status=lambda s=s: s) for name, s in statuses.items()}

    def statuses(self) -> dict[str, object]:
        parts = (
            "runtime",
            "share",
            "groups",
            "transactions",
            "cleaner",
            "retention",
            "controller",
            "canary",
        )
        topics = {each.topic: 1 for each in self.replicas}
        return {
            **{name: AnyStatus() for name in parts},
            "cluster": AnyStatus(cluster_id="c", addresses={}),
            "metadata": AnyStatus(partition_counts=topics),
            "replication": AnyStatus(replicas=self.replicas),
            "storage": AnyStatus(directories=(self.disk,)),
            "serving": AnyStatus(connections={}),
            "lags": LagsStatus((), 5),
            "canary": CanaryStatus(0, -1, 0, 0, 0, *[Latency()] * 3),
        }

    async def look(self, *, after_s: int = 5) -> dict[str, float]:
        """Every sample by name and labels, after some time."""
        self.clock.advance(after_s * 1000)
        return {
            f"{family.metric.name}{at.text}": value
            for family in await self.collection.collect()
            for at, value in zip(family.labels, family.values, strict=True)
        }


def test_counters_of_a_topic_never_fall() -> None:
    """A replica moves away, and later comes back with counts that begin at 0."""

    async def scenario() -> None:
        world = World()
        name = 'kafka_server_brokertopicmetrics_messagesin_total{topic="t"}'
        other = REPLICA._replace(partition=1, records_in=7)
        seen = []
        for replicas in (
            (REPLICA, other),
            (REPLICA._replace(records_in=15), other),
            (other,),
            (REPLICA._replace(records_in=3), other),
        ):
            world.replicas = replicas
            seen.append((await world.look())[name])
        assert seen == [17, 22, 22, 25]

    asyncio.run(scenario())


def test_the_age_of_the_lso_is_that_of_its_place() -> None:
    """It counts while the LSO stays below the high watermark, from 0 where it has moved."""

    async def scenario() -> None:
        world = World()
        name = 'ottla_partition_lso_age_seconds{topic="t",partition="0"}'
        seen = []
        for stable in (10, 4, 4, 4, 6, 10):
            world.replicas = (REPLICA._replace(last_stable_offset=stable),)
            seen.append((await world.look()).get(name))
        assert seen == [None, 0, 5, 10, 0, None]

    asyncio.run(scenario())


def test_a_disk_that_fills_has_a_forecast() -> None:
    """100,000 bytes a minute leave 400,000 above the reserve for four minutes."""

    async def scenario() -> None:
        world = World()
        name = 'ottla_disk_full_seconds{path="/data"}'
        assert name not in await world.look()
        world.disk = replace(DISK, free_bytes=500_000)
        assert (await world.look(after_s=60))[name] == 240
        world.disk = replace(DISK, free_bytes=700_000)
        assert name not in await world.look(after_s=60)

    asyncio.run(scenario())


def test_samples_are_collected_at_most_once_a_second() -> None:
    """However many ask, and however often."""

    async def scenario() -> None:
        world = World()
        await asyncio.gather(*(world.collection.collect() for _ in range(20)))
        assert (world.refreshed, world.collection.collections) == (1, 1)
        await world.look(after_s=1)
        assert world.collection.collections == 2

    asyncio.run(scenario())


def test_thousands_of_partitions_let_the_loop_serve_in_between() -> None:
    async def scenario() -> None:
        world = World()
        world.replicas = tuple(REPLICA._replace(partition=number) for number in range(2_000))
        turns = SimpleNamespace(count=0, ended=False)

        async def others() -> None:
            while not turns.ended:
                turns.count += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(others())
        found = await world.look()
        turns.ended = True
        await task
        assert found['kafka_log_log_size{topic="t",partition="1999"}'] == 500
        assert turns.count >= 20

    asyncio.run(scenario())
