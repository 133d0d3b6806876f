"""Topics across crashes: whole or not at all, and what was begun is finished."""

import asyncio
import contextlib
import random
from types import SimpleNamespace

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings
from ottla.broker.topics import Topics
from ottla.coordination.memory import MemoryStore, MemoryTree
from ottla.coordination.store import StoreUnavailable
from ottla.metadata import paths
from ottla.metadata.image import BrokerImage, ClusterImage
from ottla.metadata.loader import load_image
from ottla.metadata.topic_plan import NewTopic


class Host:
    """Remembers which partitions it was told to have, and what the image was then."""

    def __init__(self, holder):
        self._holder = holder
        self.partitions = set()
        self.published = []

    async def apply(self, image):
        await asyncio.sleep(0)
        self.published.append(set(self._holder.image.topics) if self._holder.image else None)
        self.partitions = {
            (topic.name, index)
            for topic in image.topics.values()
            for index in range(len(topic.partitions))
        }

    def update_configs(self, image):
        pass


class FailingStore(MemoryStore):
    """Fails in the multi that follows `good` good ones, before or after it was done."""

    def __init__(self, tree, good, *, after=False):
        super().__init__(tree)
        self._good = good
        self._after = after

    async def multi(self, operations):
        self._good -= 1
        if self._good == -1 and not self._after:
            raise StoreUnavailable("pulled the plug")
        results = await super().multi(operations)
        if self._good == -1:
            raise StoreUnavailable("pulled the plug")
        return results


async def start(tree, store=None, settings=None):
    store = store or MemoryStore(tree)
    for path in paths.FOUNDATIONS:
        await MemoryStore(tree).ensure(path)
    holder = SimpleNamespace(image=None)
    host = Host(holder)
    topics = Topics(
        holder,
        store,
        BrokerSettings(settings or {}),
        host,
        random_bytes=random.Random(7).randbytes,
    )
    loaded = await load_image(store, "c")
    image = loaded.image.with_broker(BrokerImage(1, {}))
    await topics.load(image, loaded.deleting)
    return topics, holder, host


def test_a_restart_finds_the_topics_and_opens_their_partitions():
    """The folders follow what the store says."""

    async def main():
        tree = MemoryTree()
        topics, holder, _ = await start(tree)
        await topics.create([NewTopic("t", 2, 1, configs={"retention.ms": "5"})])
        before = holder.image
        _, holder, host = await start(tree)
        assert holder.image == before
        assert host.partitions == {("t", 0), ("t", 1)}

    asyncio.run(main())


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_in_a_creation_leaves_all_of_the_topic_or_nothing(after):
    """One multi: what the restart finds is whole."""

    async def main():
        tree = MemoryTree()
        topics, _, _ = await start(tree, FailingStore(tree, 0, after=after))
        (outcome,) = await topics.create([NewTopic("t", 3, 1)])
        assert outcome.error.code is ErrorCode.REQUEST_TIMED_OUT
        _, holder, host = await start(tree)
        assert len(host.partitions) == (3 if after else 0)
        assert ("t" in holder.image.topics) == after

    asyncio.run(main())


@pytest.mark.parametrize(("good", "after"), [(0, True), (1, False), (1, True)])
def test_a_deletion_that_was_begun_is_finished_after_a_crash(good, after):
    """The mark comes first; at the next start nothing of the topic is left."""

    async def main():
        tree = MemoryTree()
        topics, holder, _ = await start(tree)
        await topics.create([NewTopic("t", 2, 1), NewTopic("u", 1, 1)])
        topics, holder, _ = await start(tree, FailingStore(tree, good, after=after))
        if good:
            with pytest.raises(StoreUnavailable):
                await topics.delete([holder.image.topics["t"]])
        else:
            (outcome,) = await topics.delete([holder.image.topics["t"]])
            assert outcome.error is not None
        _, holder, host = await start(tree)
        assert host.partitions == {("u", 0)}
        assert not [path for path in tree.entries if path.endswith("/t") or "/t/" in path]
        await topics_again(tree)

    async def topics_again(tree):
        topics, _, _ = await start(tree)
        (outcome,) = await topics.create([NewTopic("t", 1, 1)])
        assert outcome.error is None

    asyncio.run(main())


@pytest.mark.parametrize("after", [False, True])
def test_a_change_of_unknown_fate_is_found_out_before_the_next(after):
    """The store did not answer: what it holds decides, not what was meant."""

    async def main():
        tree = MemoryTree()
        topics, holder, host = await start(tree, FailingStore(tree, 0, after=after))
        await topics.create([NewTopic("t", 2, 1)])
        (outcome,) = await topics.create([NewTopic("t", 3, 1)])
        assert (outcome.error is not None) == after
        assert len(holder.image.topics["t"].partitions) == (2 if after else 3)
        assert len(host.partitions) == (2 if after else 3)

    asyncio.run(main())


@pytest.mark.parametrize(("good", "after"), [(0, True), (1, False), (1, True)])
def test_a_deletion_of_unknown_fate_is_finished_before_the_next_change(good, after):
    """Without a restart too."""

    async def main():
        tree = MemoryTree()
        store = FailingStore(tree, 1 + good, after=after)
        topics, holder, host = await start(tree, store)
        await topics.create([NewTopic("t", 2, 1)])
        topic = holder.image.topics["t"]
        with contextlib.suppress(StoreUnavailable):
            await topics.delete([topic])
        (outcome,) = await topics.create([NewTopic("t", 1, 1)])
        assert outcome.error is None
        assert host.partitions == {("t", 0)}
        assert holder.image.topics["t"].id != topic.id

    asyncio.run(main())


def test_partitions_are_open_before_clients_see_a_topic_and_hidden_before_they_close():
    """Nobody is told of a partition that does not answer."""

    async def main():
        topics, holder, host = await start(MemoryTree())
        await topics.create([NewTopic("t", 1, 1)])
        assert host.published[-1] == set()
        assert set(holder.image.topics) == {"t"}
        await topics.delete([holder.image.topics["t"]])
        assert host.published[-1] == set()
        assert set(holder.image.topics) == set()

    asyncio.run(main())


def test_changes_at_the_same_time_lose_nothing():
    """One at a time, each from the image the last one left."""

    async def main():
        topics, holder, host = await start(MemoryTree())
        await asyncio.gather(*(topics.create([NewTopic(f"t{i}", 1, 1)]) for i in range(5)))
        grown = (topics.grow(f"t{i}", 2) for i in range(5))
        await asyncio.gather(*grown, topics.delete([holder.image.topics["t0"]]))
        assert {n: len(t.partitions) for n, t in holder.image.topics.items()} == {
            f"t{i}": 2 for i in range(1, 5)
        }
        assert host.partitions == {(f"t{i}", p) for i in range(1, 5) for p in (0, 1)}

    asyncio.run(main())


def test_of_two_who_need_a_topic_both_get_the_same():
    """Automatic creation is not an error where it exists by then."""

    async def main():
        topics, _, _ = await start(MemoryTree())
        first, second = await asyncio.gather(topics.auto_create("t"), topics.auto_create("t"))
        assert first.id == second.id

    asyncio.run(main())


def test_a_topic_grows_twice():
    """Each change sees the version the last one left."""

    async def main():
        tree = MemoryTree()
        topics, holder, _ = await start(tree)
        await topics.create([NewTopic("t", 1, 1)])
        await topics.grow("t", 2)
        await topics.grow("t", 5)
        _, again, _ = await start(tree)
        assert len(holder.image.topics["t"].partitions) == 5
        assert again.image.topics["t"].partitions == holder.image.topics["t"].partitions

    asyncio.run(main())


def test_a_topic_that_is_gone_is_not_deleted_again():
    """Its id does not name it any more."""

    async def main():
        topics, holder, _ = await start(MemoryTree())
        await topics.create([NewTopic("t", 1, 1)])
        gone = holder.image.topics["t"]
        await topics.delete([gone])
        (outcome,) = await topics.delete([gone])
        assert outcome.error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    asyncio.run(main())


def test_internal_topics_have_the_shape_their_settings_give():
    """Replicas and min ISR never more than there are brokers."""

    async def main():
        topics, _, _ = await start(MemoryTree(), settings={"offsets.topic.num.partitions": "7"})
        offsets = topics.automatic("__consumer_offsets")
        assert (offsets.partitions, offsets.replication_factor) == (7, 1)
        assert offsets.configs == {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": "104857600",
        }
        transactions = topics.automatic("__transaction_state")
        assert (transactions.partitions, transactions.replication_factor) == (50, 1)
        assert transactions.configs["min.insync.replicas"] == "1"
        assert topics.automatic("t") == NewTopic("t")

    asyncio.run(main())


def test_growing_an_unknown_topic_is_refused():
    """Nothing is created by the way."""

    async def main():
        topics, holder, _ = await start(MemoryTree())
        with pytest.raises(OttlaError) as raised:
            await topics.grow("t", 3)
        assert raised.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert holder.image == ClusterImage("c", brokers={1: BrokerImage(1, {})})

    asyncio.run(main())


def test_a_broker_that_stops_gives_up_automatic_creations():
    """Nobody is left to answer."""

    async def main():
        topics, holder, _ = await start(MemoryTree())
        answered = []
        async with topics.changing:
            topics.auto_create_then(["t"], answered.append)
            await asyncio.sleep(0)
            topics.close()
            await asyncio.sleep(0)
        assert answered == []
        assert dict(holder.image.topics) == {}

    asyncio.run(main())
