"""Topics across crashes: whole or not at all, and what was begun is finished."""

import asyncio
import contextlib

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId
from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.registration import known_racks, remove
from ottla.broker.process.broker import Broker
from ottla.coordination.interface.store import Create, StoreUnavailable
from ottla.coordination.memory.memory import MemoryStore, MemoryTree
from ottla.metadata import paths
from ottla.metadata.image import BrokerImage
from ottla.metadata.nodes import encode_broker
from ottla.metadata.topic_plan import RequestedTopic
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from tests.integration.broker.inprocess import SETTINGS


class FailingStore(MemoryStore):
    """Once armed, fails in the next multi that writes a topic, before or after it was done."""

    armed = None

    async def multi(self, operations):
        writes = any(
            isinstance(op, Create)
            and op.path.startswith((f"{paths.TOPICS}/", f"{paths.DELETE_TOPICS}/"))
            for op in operations
        )
        if not writes or self.armed is None:
            return await super().multi(operations)
        after, self.armed = self.armed, None
        if after:
            await super().multi(operations)
        raise StoreUnavailable("pulled the plug")


@contextlib.asynccontextmanager
async def running(tree, settings=None, disk=None):
    """A broker over a store that can fail, stopped without a word."""
    store = FailingStore(tree)
    broker = Broker(
        BrokerSettings({**SETTINGS, **(settings or {})}),
        filesystem=disk or MemoryFileSystem(),
        store=store,
    )
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop(clean=False)
        await store.close()


def hosted(broker):
    return {(p.topic, p.index) for p in broker.partitions}


def run(scenario):
    asyncio.run(scenario())


def test_a_restart_finds_the_topics_and_opens_their_partitions():
    """The folders follow what the store says; settings are there, too."""

    async def scenario():
        tree, disk = MemoryTree(), MemoryFileSystem()
        async with running(tree, disk=disk) as broker:
            await broker.parts.metadata.topics.create(
                [RequestedTopic("t", 2, 1, configs={"retention.ms": "5"})]
            )
            topic = broker.image.topics["t"]
        async with running(tree, disk=disk) as broker:
            again = broker.image.topics["t"]
            assert (again.id, dict(again.configs)) == (topic.id, {"retention.ms": "5"})
            assert hosted(broker) == {("t", 0), ("t", 1)}
            # Two lives of a leader never share a term.
            assert again.partitions[0].leader_epoch > topic.partitions[0].leader_epoch

    run(scenario)


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_in_a_creation_leaves_all_of_the_topic_or_nothing(after):
    """One multi: what the restart finds is whole."""

    async def scenario():
        tree, disk = MemoryTree(), MemoryFileSystem()
        async with running(tree, disk=disk) as broker:
            broker.storage.store.armed = after
            (outcome,) = await broker.parts.metadata.topics.create([RequestedTopic("t", 3, 1)])
            assert outcome.error.code is ErrorCode.REQUEST_TIMED_OUT
        async with running(tree, disk=disk) as broker:
            assert len(hosted(broker)) == (3 if after else 0)
            assert ("t" in broker.image.topics) == after

    run(scenario)


@pytest.mark.parametrize("after", [False, True])
def test_a_change_of_unknown_fate_is_found_out_before_the_next(after):
    """The store did not answer: what it holds decides, not what was meant."""

    async def scenario():
        async with running(MemoryTree()) as broker:
            broker.storage.store.armed = after
            await broker.parts.metadata.topics.create([RequestedTopic("t", 2, 1)])
            (outcome,) = await broker.parts.metadata.topics.create([RequestedTopic("t", 3, 1)])
            assert (outcome.error is not None) == after
            await broker.parts.metadata.updates.wait_for(lambda image: "t" in image.topics, 120)
            assert len(broker.image.topics["t"].partitions) == (2 if after else 3)

    run(scenario)


def test_a_deletion_that_was_begun_is_finished_after_a_crash():
    """The mark is all that must survive; nothing of the topic is left, and its name is free."""

    async def scenario():
        tree, disk = MemoryTree(), MemoryFileSystem()
        async with running(tree, disk=disk) as broker:
            await broker.parts.metadata.topics.create(
                [RequestedTopic("t", 2, 1), RequestedTopic("u", 1, 1)]
            )
        await MemoryStore(tree).multi([Create(paths.topic_deletion("t"))])
        async with running(tree, disk=disk) as broker:
            gone = await broker.parts.metadata.updates.wait_for(
                lambda image: "t" not in image.topics, 120
            )
            assert gone
            async with asyncio.timeout(120):
                while paths.topic_deletion("t") in tree.entries:  # noqa: ASYNC110  # A condition.
                    await asyncio.sleep(0.001)
            assert hosted(broker) == {("u", 0)}
            assert not [p for p in tree.entries if p.endswith("/t") or "/t/" in p]
            (outcome,) = await broker.parts.metadata.topics.create([RequestedTopic("t", 1, 1)])
            assert outcome.error is None

    run(scenario)


def test_a_deletion_of_unknown_fate_is_carried_out_all_the_same():
    """The mark was made, though nobody heard of it."""

    async def scenario():
        async with running(MemoryTree()) as broker:
            await broker.parts.metadata.topics.create([RequestedTopic("t", 2, 1)])
            topic = broker.image.topics["t"]
            broker.storage.store.armed = True
            (outcome,) = await broker.parts.metadata.topics.delete([topic])
            assert outcome.error is not None
            assert await broker.parts.metadata.updates.wait_for(
                lambda image: "t" not in image.topics, 120
            )

    run(scenario)


def test_changes_at_the_same_time_lose_nothing():
    """Whoever comes second reads again what the first one wrote."""

    async def scenario():
        async with running(MemoryTree()) as broker:
            topics = broker.parts.metadata.topics
            await asyncio.gather(
                *(topics.create([RequestedTopic(f"t{i}", 1, 1)]) for i in range(5))
            )
            grown = (topics.grow(f"t{i}", 2) for i in range(1, 5))
            await asyncio.gather(*grown, topics.delete([broker.image.topics["t0"]]))
            assert {n: len(t.partitions) for n, t in broker.image.topics.items()} == {
                f"t{i}": 2 for i in range(1, 5)
            }
            assert hosted(broker) == {(f"t{i}", p) for i in range(1, 5) for p in (0, 1)}

    run(scenario)


def test_of_two_who_need_a_topic_both_get_the_same():
    """Automatic creation is not an error where it exists by then."""

    async def scenario():
        async with running(MemoryTree()) as broker:
            both = (
                broker.parts.metadata.topics.auto_create("t"),
                broker.parts.metadata.topics.auto_create("t"),
            )
            first, second = await asyncio.gather(*both)
            assert first.id == second.id

    run(scenario)


def test_a_topic_grows_twice():
    """Each change sees the version the last one left."""

    async def scenario():
        async with running(MemoryTree()) as broker:
            await broker.parts.metadata.topics.create([RequestedTopic("t", 1, 1)])
            await broker.parts.metadata.topics.grow("t", 2)
            await broker.parts.metadata.topics.grow("t", 5)
            assert len(broker.image.topics["t"].partitions) == 5

    run(scenario)


def test_a_topic_that_is_gone_is_not_deleted_again():
    """Its id does not name it any more."""

    async def scenario():
        async with running(MemoryTree()) as broker:
            await broker.parts.metadata.topics.create([RequestedTopic("t", 1, 1)])
            gone = broker.image.topics["t"]
            await broker.parts.metadata.topics.delete([gone])
            (outcome,) = await broker.parts.metadata.topics.delete([gone])
            assert outcome.error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run(scenario)


def test_internal_topics_have_the_shape_their_settings_give():
    """Replicas and min ISR never more than there are brokers, where nobody set how many."""

    async def scenario():
        async with running(MemoryTree(), {"offsets.topic.num.partitions": "7"}) as broker:
            offsets = await broker.parts.metadata.topics.automatic("__consumer_offsets")
            assert (offsets.partitions, offsets.replication_factor) == (7, 1)
            assert offsets.configs == {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": "104857600",
            }
            transactions = await broker.parts.metadata.topics.automatic("__transaction_state")
            assert (transactions.partitions, transactions.replication_factor) == (50, 1)
            assert transactions.configs["min.insync.replicas"] == "1"
            assert await broker.parts.metadata.topics.automatic("t") == RequestedTopic("t")

    run(scenario)


def registration(broker_id):
    return encode_broker(BrokerImage(BrokerId(broker_id), {}), 0, "boot")


def test_internal_topics_count_on_brokers_that_are_away():
    """Who was registered and is not removed will be back, and has its replicas then."""

    async def scenario():
        tree = MemoryTree()
        store = MemoryStore(tree)
        async with running(tree, {"offsets.topic.num.partitions": "3"}) as broker:
            for absent in (0, 2):
                await store.multi([Create(paths.broker_epoch(absent), registration(absent))])
            assert (await broker.parts.metadata.topics.automatic("__transaction_state")).configs[
                "min.insync.replicas"
            ] == "2"
            topic = await broker.parts.metadata.topics.auto_create("__consumer_offsets")
            assert [sorted(p.replicas) for p in topic.partitions] == [[0, 1, 2]] * 3
            assert [(p.leader, p.isr) for p in topic.partitions] == [(1, (1,))] * 3
            await remove(store, 2)
            assert (
                await broker.parts.metadata.topics.automatic("__transaction_state")
            ).replication_factor == 2

    run(scenario)


def test_a_replication_factor_that_was_set_is_waited_for():
    """An internal topic keeps what it is made with: better none for a moment than too few."""

    async def scenario():
        settings = {
            "offsets.topic.replication.factor": "2",
            "transaction.state.log.replication.factor": "2",
        }
        tree = MemoryTree()
        store = MemoryStore(tree)
        async with running(tree, settings) as broker:
            with pytest.raises(OttlaError, match=r"asks for 2 replicas.*has 1 broker") as raised:
                await broker.parts.metadata.topics.auto_create("__consumer_offsets")
            assert raised.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
            with pytest.raises(OttlaError):
                await broker.parts.metadata.topics.auto_create("__transaction_state")
            assert dict(broker.image.topics) == {}
            await store.multi([Create(paths.broker_epoch(2), registration(2))])
            topic = await broker.parts.metadata.topics.auto_create("__consumer_offsets")
            assert topic.replication_factor == 2

    run(scenario)


def test_only_a_broker_that_is_gone_is_removed():
    """And it is known again as soon as it registers, in an epoch above those it had."""

    async def scenario():
        tree, disk = MemoryTree(), MemoryFileSystem()
        store = MemoryStore(tree)

        async def refusal(broker_id):
            with pytest.raises(OttlaError) as raised:
                await remove(store, broker_id)
            return raised.value.code

        async with running(tree, disk=disk) as broker:
            assert await refusal(1) is ErrorCode.INVALID_REQUEST
            assert await refusal(2) is ErrorCode.BROKER_ID_NOT_REGISTERED
            before = broker.image.brokers[1].epoch
        await remove(store, 1)
        assert await known_racks(store) == {}
        assert await refusal(1) is ErrorCode.BROKER_ID_NOT_REGISTERED
        async with running(tree, disk=disk) as broker:
            assert await known_racks(store) == {1: None}
            assert broker.image.brokers[1].epoch > before

    run(scenario)


def test_growing_an_unknown_topic_is_refused():
    """Nothing is created by the way."""

    async def scenario():
        async with running(MemoryTree()) as broker:
            with pytest.raises(OttlaError) as raised:
                await broker.parts.metadata.topics.grow("t", 3)
            assert raised.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert dict(broker.image.topics) == {}

    run(scenario)


def test_a_broker_that_stops_gives_up_automatic_creations():
    """Nobody is left to answer."""

    async def scenario():
        async with running(MemoryTree()) as broker:
            answered = []
            async with broker.parts.metadata.updates.changing:
                broker.parts.metadata.topics.auto_create_then(["t"], answered.append)
                await asyncio.sleep(0)
                broker.parts.metadata.topics.close()
                await asyncio.sleep(0)
            assert answered == []

    run(scenario)
