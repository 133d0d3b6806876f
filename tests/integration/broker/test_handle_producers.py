"""DescribeProducers: what a partition remembers of its producers (KIP-664)."""

import asyncio

from ottla.base.errors import ErrorCode
from ottla.metadata.topic_plan import RequestedTopic
from ottla.record.builder import BatchBuilder
from ottla.wire.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from ottla.wire.messages.transaction_listings import DescribeProducersRequest, TopicRequest
from tests.integration.broker.inprocess import run


async def produce(caller, producer_id, epoch, sequence, *values):
    builder = BatchBuilder(producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    for value in values:
        builder.append(caller.broker.runtime.clock.now_ms(), None, value)
    data = PartitionProduceData(index=0, records=builder.build())
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[data])]
    )
    answer = await caller.call(request, 9)
    assert answer.responses[0].partition_responses[0].error_code == 0


async def describe(caller, topic, *partitions):
    request = DescribeProducersRequest(
        topics=[TopicRequest(name=topic, partition_indexes=list(partitions))]
    )
    (described,) = (await caller.call(request, 0)).topics
    assert described.name == topic
    return described.partitions


def test_idempotent_producers_are_told_with_their_last_sequence():
    """In the order of their ids; none of them has a transaction open."""

    async def scenario(caller):
        await caller.broker.parts.metadata.topics.create([RequestedTopic("t", 1, 1)])
        await produce(caller, 8, 2, 0, b"a", b"b", b"c")
        await produce(caller, 7, 0, 0, b"d")
        now_ms = caller.broker.runtime.clock.now_ms()
        (partition,) = await describe(caller, "t", 0)
        assert partition.error_code == 0
        assert [
            (p.producer_id, p.producer_epoch, p.last_sequence, p.last_timestamp)
            for p in partition.active_producers
        ] == [(7, 0, 0, now_ms), (8, 2, 2, now_ms)]
        assert {p.current_txn_start_offset for p in partition.active_producers} == {-1}

    run(scenario)


def test_a_partition_that_is_not_there_tells_so():
    """Beside those that are."""

    async def scenario(caller):
        await caller.broker.parts.metadata.topics.create([RequestedTopic("t", 1, 1)])
        known, unknown = await describe(caller, "t", 0, 5)
        assert (known.error_code, known.active_producers) == (0, [])
        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert unknown.error_message

    run(scenario)


def test_an_altered_expiration_holds_without_a_restart():
    """For producers that are remembered already, at the next look; and the interval is read."""

    async def scenario(caller):
        await caller.broker.parts.metadata.topics.create([RequestedTopic("t", 1, 1)])
        await produce(caller, 7, 0, 0, b"a")
        caller.broker.runtime.clock.advance(2_000)
        await asyncio.sleep(0.05)
        (partition,) = await describe(caller, "t", 0)
        assert [each.producer_id for each in partition.active_producers] == [7]
        config = AlterableConfig(name="producer.id.expiration.ms", config_operation=0, value="1000")
        resource = AlterConfigsResource(resource_type=4, resource_name="", configs=[config])
        request = IncrementalAlterConfigsRequest(resources=[resource])
        (response,) = (await caller.call(request, 1)).responses
        assert response.error_code == ErrorCode.NONE
        async with asyncio.timeout(120):
            while (await describe(caller, "t", 0))[0].active_producers:
                pass
        assert caller.broker.storage.log_directories.producer_expiration_ms == 1_000

    run(scenario, {"producer.id.expiration.check.interval.ms": "10"})
