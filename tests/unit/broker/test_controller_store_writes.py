"""What the controller writes and tells, where the store or a broker does not answer."""

import asyncio
from random import Random
from uuid import UUID

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.broker.cluster.registration import prepare
from ottla.broker.controller.context import Context
from ottla.broker.controller.messages import ControllerMessages
from ottla.broker.controller.sender import BrokerSender, Reports
from ottla.broker.controller.store_access import Deposed, Planned, read_states, write_changes
from ottla.broker.topics.operations import creation
from ottla.controller.election import Change, Rules
from ottla.coordination.interface.store import Set, StoreUnavailable
from ottla.coordination.memory.faults import StoreFaults
from ottla.coordination.memory.memory import MemoryStore, MemoryTree
from ottla.metadata import paths
from ottla.metadata.image import BrokerImage, PartitionImage, TopicImage
from ottla.metadata.loader import load_topics
from ottla.wire.messages.between_brokers import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    UpdateMetadataResponse,
)

EPOCH = 0
LED = PartitionImage(leader=1, leader_epoch=0, replicas=(1, 2), isr=(1, 2), version=0)


class Unread(Reports):
    """Nothing is done about what a sender reports."""


def play(scenario):
    """Run `scenario(store, faults, context)`: a topic `t` of two partitions, led by 1."""

    async def main():
        faults = StoreFaults(Random(1), latency_ms=(0, 0), watch_delay_ms=(0, 0))
        store = MemoryStore(MemoryTree(), name="controller", faults=faults)
        await prepare(store)
        await store.multi(creation(TopicImage("t", UUID(int=1), (LED, LED), {})))
        context = Context(lambda _topic: Rules(min_isr=1))
        context.topics = await load_topics(store, ["t"])
        await scenario(store, faults, context)
        await store.close()

    asyncio.run(asyncio.wait_for(main(), 120))


def to(leader, context, index, topic="t"):
    """The next term, led by `leader`."""
    name = TopicPartition(topic, index)
    before = context.partition(name)
    after = before._replace(leader=leader, leader_epoch=before.leader_epoch + 1)
    return Planned(name, before, Change(after, None, "", ""))


def test_what_is_written_is_what_is_known():
    """The context has the versions that the store gave."""

    async def scenario(store, _faults, context):
        written, refused = await write_changes(
            store, context, EPOCH, [to(2, context, 0), to(2, context, 1)]
        )
        assert [planned.name.partition for planned in written] == [0, 1]
        assert refused == []
        assert context.topics == await load_topics(store, ["t"])
        assert [partition.version for partition in context.topics["t"].partitions] == [1, 1]

    play(scenario)


def test_one_that_changed_meanwhile_is_refused_and_the_rest_is_written():
    """A leader was faster about partition 0."""

    async def scenario(store, _faults, context):
        path = paths.partition_state("t", 0)
        await store.multi([Set(path, (await store.get(path)).data)])
        written, refused = await write_changes(
            store, context, EPOCH, [to(2, context, 0), to(2, context, 1)]
        )
        assert [planned.name.partition for planned in written] == [1]
        assert [planned.name.partition for planned in refused] == [0]
        assert context.partition(TopicPartition("t", 0)).leader == 1

    play(scenario)


def test_of_many_those_that_changed_are_found_in_one_look():
    """Leaders were faster about every other of forty: two writes, and not twenty-one."""

    async def scenario(store, _faults, context):
        await store.multi(creation(TopicImage("many", UUID(int=2), (LED,) * 40, {})))
        context.topics = await load_topics(store, ["many"])
        for index in range(0, 40, 2):
            path = paths.partition_state("many", index)
            await store.multi([Set(path, (await store.get(path)).data)])
        writes = []
        multi = store.multi

        async def counted(operations):
            writes.append(len(operations))
            return await multi(operations)

        store.multi = counted
        changes = [
            Planned(TopicPartition("many", index), LED, to(2, context, 0, "many").change)
            for index in range(40)
        ]
        written, refused = await write_changes(store, context, EPOCH, changes)
        assert sorted(p.name.partition for p in written) == list(range(1, 40, 2))
        assert sorted(p.name.partition for p in refused) == list(range(0, 40, 2))
        assert writes == [41, 21]

    play(scenario)


def test_a_controller_of_the_past_writes_nothing():
    """S14: its epoch is checked in the same transaction."""

    async def scenario(store, _faults, context):
        await store.multi([Set(paths.CONTROLLER_EPOCH, b"1")])
        with pytest.raises(Deposed):
            await write_changes(store, context, EPOCH, [to(2, context, 0)])
        assert (await load_topics(store, ["t"]))["t"].partitions[0].leader == 1

    play(scenario)


@pytest.mark.parametrize("applied", [True, False])
def test_a_lost_answer_is_settled_by_reading(applied):
    """S15: whether it was carried out or not, the context says only what is known."""

    async def scenario(store, faults, context):
        faults.lose_next_answer("controller", applied=applied)
        with pytest.raises(StoreUnavailable):
            await write_changes(store, context, EPOCH, [to(2, context, 0)])
        name = TopicPartition("t", 0)
        assert context.partition(name).leader == 1
        context.set_partitions(await read_states(store, [name], context.topics))
        assert context.partition(name).leader == (2 if applied else 1)
        written, refused = await write_changes(store, context, EPOCH, [to(1, context, 0)])
        assert (len(written), len(refused)) == (1, 0)

    play(scenario)


def test_no_leader_is_told_to_clients_before_it_leads():
    """A topic that comes while a message is under way waits for the next round, wholly."""

    async def scenario(_store, _faults, context):
        told = []

        async def deliver(_broker, message):
            named = sorted(topic.topic_name for topic in message.topic_states)
            told.append((type(message).__name__, named))
            if isinstance(message, LeaderAndIsrRequest):
                if len(told) == 1:
                    context.topics["u"] = TopicImage("u", UUID(int=2), (LED,), {})
                    sender.partitions([TopicPartition("u", 0)])
                return LeaderAndIsrResponse()
            return UpdateMetadataResponse()

        sender = BrokerSender(broker(1), context, ControllerMessages(1, EPOCH), deliver, Unread())
        sender.start()
        await sender.settled()
        sender.stop()
        assert told == [
            ("LeaderAndIsrRequest", ["t"]),
            ("UpdateMetadataRequest", ["t"]),
            ("LeaderAndIsrRequest", ["u"]),
            ("UpdateMetadataRequest", ["u"]),
        ]

    play(scenario)


def test_what_a_broker_did_not_answer_is_told_again_as_it_is_by_then():
    """Not the old message but the newest knowledge, and nothing that was overtaken."""

    async def scenario(store, _faults, context):
        leaders = []

        async def deliver(_broker, message):
            if not isinstance(message, LeaderAndIsrRequest):
                return UpdateMetadataResponse()
            leaders.append(message.topic_states[0].partition_states[0].leader)
            if len(leaders) == 1:
                await write_changes(store, context, EPOCH, [to(2, context, 0)])
                raise OttlaError(ErrorCode.NETWORK_EXCEPTION, "gone")
            return LeaderAndIsrResponse()

        sender = BrokerSender(broker(1), context, ControllerMessages(1, EPOCH), deliver, Unread())
        sender.start()
        await sender.settled()
        sender.stop()
        assert leaders == [1, 2]

    play(scenario)


def broker(broker_id):
    return BrokerImage(broker_id, {}, None, 1)
