"""Requests with many elements: served in slices, with other connections in between."""

import asyncio
import gc
import itertools
import struct
from uuid import UUID

import pytest
from rig.large_requests import growing

from ottla.base.errors import ErrorCode
from ottla.base.settings import BrokerSettings
from ottla.broker.process.apis import served
from ottla.broker.process.broker import Broker
from ottla.broker.process.main import warm_up
from ottla.broker.serving.large import LargeRequests
from ottla.broker.serving.stalls import Stalls
from ottla.coordination.memory.memory import MemoryStore
from ottla.record.builder import build_batch
from ottla.record.compression import Compression
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.testing.clock import ManualClock
from ottla.wire.api import ApiKey
from ottla.wire.frames import encode_request
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from ottla.wire.messages.configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.consumer_groups import TopicPartitions as HeartbeatTopicPartitions
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from ottla.wire.messages.reassignments import ElectLeadersRequest, TopicPartitions
from ottla.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.integration.broker.inprocess import SETTINGS, Caller, run


class HurriedClock(ManualClock):
    """A millisecond passes whenever somebody looks, so that slices end."""

    def monotonic_ms(self):
        self.advance(1)
        return super().monotonic_ms()


def many(count, prefix="n"):
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=f"{prefix}{n}") for n in range(count)],
        allow_auto_topic_creation=False,
    )


async def started(clock=None):
    broker = Broker(
        BrokerSettings(SETTINGS),
        clock=clock or HurriedClock(),
        filesystem=MemoryFileSystem(),
        store=MemoryStore(),
    )
    await broker.start()
    return broker


async def caller(broker):
    return Caller(broker, *await asyncio.open_connection("127.0.0.1", broker.port))


def test_others_are_served_before_a_large_request_is_answered():
    """Each of the other's requests, sent after it, is answered before it."""

    async def main():
        broker = await started()
        large, other = await caller(broker), await caller(broker)
        waiting = asyncio.ensure_future(large.call(many(20_000), 12))
        for _ in range(20):
            await other.call(ApiVersionsRequest(), 0)
        assert not waiting.done()
        answer = await waiting
        assert [one.name for one in answer.topics] == [f"n{n}" for n in range(20_000)]
        await large.close()
        await other.close()
        await broker.stop()

    asyncio.run(main())


def test_answers_keep_their_order_around_a_large_request():
    """What the same connection sent before and after it is answered before and after it."""

    async def main():
        broker = await started()
        reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
        sent = [ApiVersionsRequest(), many(2_000), ApiVersionsRequest(), many(3_000), many(2)]
        for correlation_id, body in enumerate(sent):
            version = 0 if isinstance(body, ApiVersionsRequest) else 12
            for part in encode_request(body, version, correlation_id, "t"):
                writer.write(part)
        for expected in range(len(sent)):
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            frame = await reader.readexactly(size)
            assert struct.unpack_from(">i", frame) == (expected,)
        writer.close()
        await broker.stop()

    asyncio.run(main())


def test_one_client_has_few_large_requests_in_work_and_all_are_answered():
    """Ten of one address come at once; two connections that end have no place for good."""

    async def main():
        broker = await started()
        callers = [await caller(broker) for _ in range(12)]
        waiting = [asyncio.ensure_future(each.call(many(3_000), 12)) for each in callers]
        await asyncio.sleep(0)
        for each, future in list(zip(callers, waiting, strict=True))[:2]:
            future.cancel()
            await each.close()
        answers = await asyncio.gather(*waiting[2:])
        assert [len(each.topics) for each in answers] == [3_000] * 10
        answer = await callers[5].call(many(1_000), 12)
        assert len(answer.topics) == 1_000
        for each in callers[2:]:
            await each.close()
        await broker.stop()

    asyncio.run(main())


def test_the_addresses_of_one_ipv6_network_share_places():
    """A client that has not logged in cannot take all places from its own network."""

    async def main():
        broker = await started()
        callers = [await caller(broker) for _ in range(3)]
        await callers[-1].call(many(1), 12)
        (listener,) = broker.serving.listeners.open
        large = LargeRequests(broker.runtime, Stalls(ManualClock().monotonic_ms))
        taken = []
        for number, connection in enumerate(listener.connections):
            connection.peer_host = f"2001:db8::{number}"
            taken.append(large.take(connection, lambda _frame: None))
        assert taken == [True, True, False]
        for each in callers:
            await each.close()
        await broker.stop()

    asyncio.run(main())


def test_a_user_beyond_its_request_quota_waits_on_every_connection():
    """One connection's work keeps another's request from being carried out until it is paid for."""

    async def main():
        clock = ManualClock()
        broker = await started(clock)
        busy, other = await caller(broker), await caller(broker)
        await busy.call(ApiVersionsRequest(), 0)
        entity = [EntityData(entity_type="user", entity_name="ANONYMOUS")]
        ops = [OpData(key="request_percentage", value=0.01)]
        entry = EntryData(entity=entity, ops=ops)
        await other.call(AlterClientQuotasRequest(entries=[entry]), 1)
        await busy.call(many(3_000), 12)
        waiting = asyncio.ensure_future(other.call(ApiVersionsRequest(), 0))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        clock.advance(3_600_000)
        await waiting
        await busy.close()
        await other.close()
        await broker.stop(clean=False)

    asyncio.run(main())


async def until(condition):
    while not condition():  # noqa: ASYNC110  # No event says it.
        await asyncio.sleep(0)


def turns_of(broker):
    """Those of the broker's large requests."""
    runtime = broker.runtime
    (large,) = [
        one for one in gc.get_objects() if isinstance(one, LargeRequests) and one.runtime is runtime
    ]
    return large.turns


async def limited(callers, client_id, percentage):
    """Bound the time of the loop for clients of that id."""
    entity = [EntityData(entity_type="client-id", entity_name=client_id)]
    ops = [OpData(key="request_percentage", value=percentage)]
    await callers.call(AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=ops)]), 1)


async def sent(broker, host, count, client_id):
    """Send a large request from a client of its own, at that address."""
    (listener,) = broker.serving.listeners.open
    before = set(listener.connections)
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
    await until(lambda: len(listener.connections) > len(before))
    (made,) = set(listener.connections) - before
    made.peer_host = host
    for part in encode_request(many(count), 12, 7, client_id):
        writer.write(part)
    return reader, writer


def test_those_that_wait_for_their_quota_leave_their_places_to_others():
    """As many as there are places sleep in the midst of their work; another is answered."""

    async def main():
        broker = await started()
        turns = turns_of(broker)
        other = await caller(broker)
        await limited(other, "slow", 0.000_1)
        slow = [await sent(broker, f"10.0.0.{n // 2}", 20_000, "slow") for n in range(4)]
        await until(lambda: turns.begun == 4)
        assert len((await other.call(many(3_000), 12)).topics) == 3_000
        assert turns.begun == 4
        for _, writer in slow:
            writer.close()
        await until(lambda: not turns.begun)
        await other.close()
        await broker.stop(clean=False)

    asyncio.run(main())


def test_work_for_a_client_that_has_left_ends():
    """Though it is held, and has sent more than is read."""

    async def main():
        broker = await started()
        turns = turns_of(broker)
        _, writer = await asyncio.open_connection("127.0.0.1", broker.port)
        for part in (
            *encode_request(many(60_000), 12, 7, "t"),
            *encode_request(ApiVersionsRequest(), 0, 8, "t"),
        ):
            writer.write(part)
        await until(lambda: turns.begun)
        (listener,) = broker.serving.listeners.open
        (connection,) = listener.connections
        writer.close()
        await until(lambda: not turns.begun)
        assert connection.closed
        await broker.stop(clean=False)

    asyncio.run(main())


def test_a_large_request_is_answered_as_a_short_one():
    """The partitions of one topic are together; a topic that is named twice is there once."""

    async def scenario(client):
        await client.call(
            CreateTopicsRequest(
                topics=[CreatableTopic(name="t", num_partitions=700, replication_factor=1)]
            ),
            7,
        )
        partitions = [ListOffsetsPartition(partition_index=n, timestamp=-1) for n in range(700)]
        asked = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=partitions)])
        answer = await client.call(asked, 7)
        (topic,) = answer.topics
        assert [one.partition_index for one in topic.partitions] == list(range(700))
        assert {one.error_code for one in topic.partitions} == {0}
        names = [MetadataRequestTopic(name="t")] * 500
        answer = await client.call(MetadataRequest(topics=names), 12)
        assert [one.name for one in answer.topics] == ["t"]

    run(scenario)


@pytest.mark.parametrize("count", [3, 700])
def test_a_partition_that_is_named_twice_has_no_offset_however_long_the_request(count):
    """INVALID_REQUEST for each time that it is named; all others are answered."""

    async def scenario(client):
        topic = CreatableTopic(name="t", num_partitions=count, replication_factor=1)
        await client.call(CreateTopicsRequest(topics=[topic]), 7)
        indexes = [0, *range(count), count - 1]
        topics = [
            ListOffsetsTopic(
                name="t",
                partitions=[ListOffsetsPartition(partition_index=n, timestamp=-1) for n in some],
            )
            for some in (indexes[: count // 2], indexes[count // 2 :])
        ]
        answer = await client.call(ListOffsetsRequest(topics=topics), 7)
        assert {one.name for one in answer.topics} == {"t"}
        codes = [(p.partition_index, p.error_code) for one in answer.topics for p in one.partitions]
        refused = [(0, 42)] * 2 + [(count - 1, 42)] * 2
        assert sorted(codes) == sorted(refused + [(n, 0) for n in range(1, count - 1)])

    run(scenario)


@pytest.mark.parametrize("count", [1, 700])
def test_a_topic_that_is_named_twice_is_neither_grown_nor_deleted(count):
    """It is answered once, whether the request is long or not."""

    async def scenario(client):
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        await client.call(CreateTopicsRequest(topics=[topic]), 7)
        names = ["t", *(f"n{n}" for n in range(count)), "t"]
        grown = await client.call(
            CreatePartitionsRequest(
                topics=[CreatePartitionsTopic(name=name, count=2) for name in names]
            ),
            3,
        )
        expected = {("t", 42), *((f"n{n}", 3) for n in range(count))}
        assert len(grown.results) == len(expected)
        assert {(one.name, one.error_code) for one in grown.results} == expected
        for version, body in (
            (5, DeleteTopicsRequest(topic_names=names)),
            (6, DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names])),
        ):
            deleted = await client.call(body, version)
            assert len(deleted.responses) == len(expected)
            assert {(one.name, one.error_code) for one in deleted.responses} == expected

    run(scenario)


def test_a_topic_that_is_named_by_name_and_id_is_not_deleted_by_a_long_request():
    """Which of the two comes first does not matter."""

    async def scenario(client):
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        created = await client.call(CreateTopicsRequest(topics=[topic]), 7)
        wanted = [
            DeleteTopicState(name="t"),
            *(DeleteTopicState(name=f"n{n}") for n in range(700)),
            DeleteTopicState(name=None, topic_id=created.topics[0].topic_id),
        ]
        deleted = await client.call(DeleteTopicsRequest(topics=wanted), 6)
        assert [one.name for one in deleted.responses if one.error_code == 42] == ["t"]
        asked = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
        assert [one.error_code for one in (await client.call(asked, 12)).topics] == [0]

    run(scenario)


@pytest.mark.parametrize("count", [1, 700])
def test_a_resource_that_is_named_twice_is_not_altered(count):
    """INVALID_REQUEST for each time that it is named, whether the request is long or not."""

    async def scenario(client):
        resources = [
            AlterConfigsResource(resource_type=2, resource_name=name, configs=[])
            for name in ["t", *(f"n{n}" for n in range(count)), "t"]
        ]
        answer = await client.call(IncrementalAlterConfigsRequest(resources=resources), 1)
        codes = [one.error_code for one in answer.responses if one.resource_name == "t"]
        assert codes == [42, 42]
        assert len(answer.responses) == count + 2

    run(scenario)


def test_an_error_of_a_long_election_is_that_of_each_partition():
    """Of those of every portion, and of the request as a whole."""

    async def scenario(client):
        named = TopicPartitions(topic="t", partitions=list(range(700)))
        answer = await client.call(
            ElectLeadersRequest(election_type=7, topic_partitions=[named]), 2
        )
        (topic,) = answer.replica_election_results
        assert [one.partition_id for one in topic.partition_result] == list(range(700))
        assert {one.error_code for one in topic.partition_result} == {answer.error_code} == {42}

    run(scenario)


def too_many_replicas(count):
    return [
        CreatableTopic(name=f"n{n}", num_partitions=1, replication_factor=9) for n in range(count)
    ]


@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_a_batch_for_each_of_many_partitions_is_appended(acks):
    """In the order of the request, and what comes after it on the connection after it."""

    async def scenario(client):
        topic = CreatableTopic(name="t", num_partitions=700, replication_factor=1)
        await client.call(CreateTopicsRequest(topics=[topic]), 7)
        data = [
            PartitionProduceData(index=n, records=memoryview(build_batch([0], None, [b"one"])))
            for n in range(700)
        ]
        asked = ProduceRequest(
            acks=acks,
            timeout_ms=60_000,
            topic_data=[TopicProduceData(name="t", partition_data=data)],
        )
        if acks:
            (answered,) = (await client.call(asked, 9)).responses
            found = [(one.index, one.error_code) for one in answered.partition_responses]
            assert found == [(n, 0) for n in range(700)]
        else:
            client.write_request(asked, 9)
        ends = ListOffsetsRequest(
            topics=[
                ListOffsetsTopic(
                    name="t",
                    partitions=[
                        ListOffsetsPartition(partition_index=n, timestamp=-1) for n in range(700)
                    ],
                )
            ]
        )
        (ended,) = (await client.call(ends, 7)).topics
        assert {one.offset for one in ended.partitions} == {1}

    run(scenario)


def test_what_a_producer_sends_before_it_leaves_is_appended():
    """Without acknowledgements it does not wait for the broker."""

    async def scenario(client):
        topic = CreatableTopic(name="t", num_partitions=700, replication_factor=1)
        await client.call(CreateTopicsRequest(topics=[topic]), 7)
        batch = memoryview(build_batch([0], None, [b"one"]))
        data = [PartitionProduceData(index=n, records=batch) for n in range(700)]
        producer = await caller(client.broker)
        topics = [TopicProduceData(name="t", partition_data=data)]
        producer.write_request(ProduceRequest(acks=0, timeout_ms=60_000, topic_data=topics), 9)
        await producer.close()
        partitions = client.broker.partitions
        await until(lambda: all(partitions.get("t", n).log_end_offset for n in range(700)))

    run(scenario)


def test_what_a_produce_request_may_have_expanded_is_counted_over_all_its_portions():
    """Batches of 250,000 bytes: after 32 MiB the others are refused, whichever portion they are in.

    Clients send those again.
    """

    async def scenario(client):
        compacted = CreatableTopicConfig(name="cleanup.policy", value="compact")
        topic = CreatableTopic(
            name="t", num_partitions=600, replication_factor=1, configs=[compacted]
        )
        await client.call(CreateTopicsRequest(topics=[topic]), 7)
        small = memoryview(build_batch([0], [b"k"], [b"one"]))
        large = memoryview(
            build_batch([0], [b"k"], [bytes(250_000)], compression=Compression.GZIP, level=1)
        )
        data = [
            PartitionProduceData(index=n, records=small if n % 4 else large) for n in range(600)
        ]
        asked = ProduceRequest(
            acks=1,
            timeout_ms=60_000,
            topic_data=[TopicProduceData(name="t", partition_data=data)],
        )
        (answered,) = (await client.call(asked, 9)).responses
        found = [one.error_code for one in answered.partition_responses]
        first = next(n for n in range(600) if found[n])
        # The one with which the bound is passed is still served.
        assert first == 4 * ((32 << 20) // 250_000) + 1
        assert set(found[first:]) == {ErrorCode.THROTTLING_QUOTA_EXCEEDED}

    run(scenario)


def test_more_partitions_than_one_request_may_make_are_refused_before_rights_are_looked_up():
    """With one sentence for all, though the client may create none of the topics."""

    async def main():
        broker = Broker(
            BrokerSettings(
                {
                    **SETTINGS,
                    "authorizer.class.name": "org.apache.kafka.metadata.authorizer"
                    ".StandardAuthorizer",
                    "super.users": "User:x",
                }
            ),
            clock=HurriedClock(),
            filesystem=MemoryFileSystem(),
            store=MemoryStore(),
        )
        await broker.start()
        client = await caller(broker)
        for count, code in ((10_000, 29), (10_001, 44)):
            topics = [
                CreatableTopic(name=f"n{n}", num_partitions=1, replication_factor=1)
                for n in range(count)
            ]
            answer = await client.call(CreateTopicsRequest(topics=topics), 7)
            assert {one.error_code for one in answer.topics} == {code}
            assert len(answer.topics) == count
        await client.close()
        await broker.stop(clean=False)

    asyncio.run(main())


def test_a_whole_request_with_many_elements_is_served_in_one_go(caplog):
    """It has the same answer as a short one, and more than 50,000 elements end its connection."""

    async def scenario(client):
        topics = too_many_replicas(1_000)
        answer = await client.call(CreateTopicsRequest(topics=topics), 7)
        assert [one.name for one in answer.topics] == [f"n{n}" for n in range(1_000)]
        assert {one.error_code for one in answer.topics} == {38}
        data = [
            TopicProduceData(name=f"n{n}", partition_data=[PartitionProduceData(records=b"")])
            for n in range(400)
        ]
        answer = await client.call(ProduceRequest(acks=1, topic_data=data), 9)
        assert len(answer.responses) == 400
        with pytest.raises(asyncio.IncompleteReadError):
            await client.call(CreateTopicsRequest(topics=topics * 101), 7)
        assert "CREATE_TOPICS of User:ANONYMOUS has more than 50,000 elements" in caplog.text
        heartbeat = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            topic_partitions=[
                HeartbeatTopicPartitions(topic_id=UUID(int=n), partitions=[0])
                for n in range(1, 10_001)
            ],
            subscribed_topic_names=[f"n{n}" for n in range(10_000)],
        )
        other = await caller(client.broker)
        assert (await other.call(heartbeat, 0)).error_code
        await other.close()

    run(scenario)


def alive():
    """The answers to large requests that are in memory, and what was worked on them."""
    kinds = {"MetadataResponse", "CreateTopicsResponse", "_Work"}
    return [name for one in gc.get_objects() if (name := type(one).__name__) in kinds]


def test_a_large_request_that_is_answered_is_no_garbage():
    """Nothing of it waits for the collector of cycles, whether it was served or refused."""

    async def scenario(client):
        topics = too_many_replicas(1_000)
        gc.collect()
        gc.disable()
        try:
            before = alive()
            assert len((await client.call(many(3_000), 12)).topics) == 3_000
            await client.call(CreateTopicsRequest(topics=topics), 7)
            with pytest.raises(asyncio.IncompleteReadError):
                await client.call(CreateTopicsRequest(topics=topics * 101), 7)
            for _ in range(20):
                await asyncio.sleep(0)
            assert alive() == before
        finally:
            gc.enable()

    run(scenario)


def test_a_large_request_is_freed_in_slices(monkeypatch):
    """Its elements, and those of its answer: all at once would hold the loop for long."""
    kinds = {"MetadataRequestTopic", "MetadataResponseTopic"}
    counts = []
    pause = LargeRequests.pause

    async def counted(self, worked_ms):
        found = [type(one).__name__ for one in gc.get_objects()]
        counts.append(sum(name in kinds for name in found))
        await pause(self, 0)

    monkeypatch.setattr(LargeRequests, "pause", counted)

    async def main():
        broker = await started(HurriedClock())
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
            # The client has it as bytes alone.
            writer.write(b"".join(map(bytes, encode_request(many(5_000), 12, 1, "test"))))
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            await reader.readexactly(size)
            writer.close()
        finally:
            await broker.stop()

    asyncio.run(main())
    assert max(counts) > 5_000
    drops = [before - after for before, after in itertools.pairwise([*counts, 0])]
    # A slice is five looks at the clock, with 256 elements between two of them.
    assert max(drops) <= 5 * 256


def test_a_large_request_causes_no_collection_of_all_objects():
    """Its own are looked through while they are young, and few at a time."""
    generations = []

    def note(phase, info):
        if phase == "start":
            generations.append(info["generation"])

    async def scenario(client):
        warm_up(client.broker)
        gc.callbacks.append(note)
        assert len((await client.call(many(60_000), 12)).topics) == 60_000

    thresholds = gc.get_threshold()
    try:
        run(scenario)
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*thresholds)
        gc.unfreeze()
    assert 0 in generations
    assert 2 not in generations


def test_no_large_request_leaves_its_connection_held():
    """Of any API that has a list: the connection is served on, or is closed."""

    async def main():
        broker = await started()
        apis = {
            one.api_key: (one.max_version, one.max_version)
            for one in (await (await caller(broker)).call(ApiVersionsRequest(), 0)).api_keys
        }
        for each in growing(apis):
            reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
            for part in encode_request(each.request(700), each.version, 1, "t"):
                writer.write(bytes(part))
            for part in encode_request(ApiVersionsRequest(), 0, 2, "t"):
                writer.write(part)
            try:
                async with asyncio.timeout(60):
                    size = 0
                    found = 0
                    while found != 2:
                        (size,) = struct.unpack(">i", await reader.readexactly(4))
                        (found,) = struct.unpack_from(">i", await reader.readexactly(size))
            except asyncio.IncompleteReadError:
                pass
            writer.close()
        await broker.stop(clean=False)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("key", "path"),
    [
        (ApiKey.OFFSET_FOR_LEADER_EPOCH, ("topics", "partitions")),
        (ApiKey.ALTER_REPLICA_LOG_DIRS, ("dirs", "topics", "partitions")),
        (ApiKey.ALTER_SHARE_GROUP_OFFSETS, ("topics", "partitions")),
        (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, ("groups",)),
        (ApiKey.SHARE_GROUP_DESCRIBE, ("group_ids",)),
    ],
)
def test_a_request_with_more_elements_than_its_api_declares_ends_its_connection(caplog, key, path):
    """Fewer are answered; for more, other clients would wait too long."""

    async def scenario(client):
        api = served()[key]
        (each,) = [one for one in growing({key: (api.versions.max,) * 2}) if one.path == path]
        limit = api.fewer_elements_max
        # An element may have a list of its own.
        await client.call(each.request(limit // 3, same=True), each.version)
        with pytest.raises(asyncio.IncompleteReadError):
            await client.call(each.request(limit + 1, same=True), each.version)
        assert f"has more than {limit:,} elements" in caplog.text

    run(scenario)
