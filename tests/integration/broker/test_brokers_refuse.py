"""What only brokers may send is refused from whoever not proven to be one."""

import logging

import pytest

from ottla.base.errors import ErrorCode
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.between_brokers import (
    ControlledShutdownRequest,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from ottla.wire.messages.list_offsets import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.integration.broker.broker_client import Client, fetch, running
from tests.integration.broker.two_brokers import run, two

REQUESTS = [
    (LeaderAndIsrRequest(), range(7, 8)),
    (StopReplicaRequest(), range(3, 5)),
    (UpdateMetadataRequest(), range(5, 9)),
    (ControlledShutdownRequest(), range(2, 4)),
]


@pytest.mark.parametrize(("request_", "versions"), REQUESTS, ids=lambda each: type(each).__name__)
def test_a_client_may_not_send_what_brokers_send(request_, versions, caplog):
    """In every version that brokers send, it gets an error, and the log says what to do."""

    async def scenario():
        async with running() as broker:
            client = await Client.connect(broker.port)
            with caplog.at_level(logging.WARNING, "ottla"):
                for version in versions:
                    response = await client.call(request_, version)
                    assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            client.close()

    run(scenario())
    (line,) = [each for each in caplog.messages if "not proven" in each]
    assert type(request_).__name__.removesuffix("Request") in line
    assert "use another store?" in line


def replica_fetch(replica_id, topic="a"):
    """A fetch as of version 12, with the id where old and new versions have it."""
    request = fetch(topic, 0)
    request.replica_id = replica_id
    return request


def new_replica_fetch(replica_id, topic_id):
    part = FetchPartition(partition_max_bytes=1000, nonce=7)
    return FetchRequest(
        replica_state=ReplicaState(replica_id=replica_id, replica_epoch=1),
        topics=[FetchTopic(topic_id=topic_id, partitions=[part])],
    )


def epoch_question(replica_id):
    asked = OffsetForLeaderTopic(topic="a", partitions=[OffsetForLeaderPartition(leader_epoch=0)])
    return OffsetForLeaderEpochRequest(replica_id=replica_id, topics=[asked])


def test_a_client_may_not_ask_as_a_replica(caplog):
    """Fetch and OffsetForLeaderEpoch with a replica's id, in old versions and new ones."""

    async def scenario():
        async with running() as broker:
            await broker.parts.metadata.topics.auto_create("a")
            topic_id = broker.image.topics["a"].id
            client = await Client.connect(broker.port)
            refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            for version in (7, 12, 14):
                request = replica_fetch(2)
                if version >= 13:
                    request.topics[0].topic_id = topic_id
                assert (await client.call(request, version)).error_code == refused
            for version in (15, 18):
                response = await client.call(new_replica_fetch(2, topic_id), version)
                assert response.error_code == refused
            for version in (3, 4):
                response = await client.call(epoch_question(2), version)
                assert response.topics[0].partitions[0].error_code == refused
            client.close()

    with caplog.at_level(logging.WARNING, "ottla"):
        run(scenario())
    # Once per connection, however often it asks.
    (line,) = [each for each in caplog.messages if "not proven" in each]
    assert "Fetch as broker 2" in line


def test_a_broker_may_ask_as_itself_only():
    """Its connection is proven to be its own: another replica's name is refused."""

    async def scenario():
        async with two() as (one, other):
            await other.parts.metadata.topics.auto_create("a")
            mine = await one.peers.request(2, epoch_question(1))
            assert mine.topics[0].partitions[0].error_code == ErrorCode.NONE
            others = await one.peers.request(2, epoch_question(3))
            refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            assert others.topics[0].partitions[0].error_code == refused
            topic_id = other.image.topics["a"].id
            assert (
                await one.peers.request(2, new_replica_fetch(3, topic_id))
            ).error_code == refused

    run(scenario())


def test_clients_are_not_told_of_what_brokers_send():
    """ApiVersions lists neither Kafka's keys 4 to 7 nor ours."""

    async def scenario():
        async with running() as broker:
            client = await Client.connect(broker.port)
            response = await client.call(ApiVersionsRequest(), 0)
            keys = {each.api_key for each in response.api_keys}
            assert 3 in keys
            assert keys & {4, 5, 6, 7, 1000} == set()
            client.close()

    run(scenario())
