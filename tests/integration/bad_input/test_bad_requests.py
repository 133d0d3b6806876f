"""Requests that ask for what is not there."""

import uuid
from collections.abc import Callable

import pytest
from rig.wire_client import WireClient

from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from ottla.wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.wire.notation import Message

MakeTopic = Callable[..., str]

OFFSET_OUT_OF_RANGE = 1
UNKNOWN_TOPIC_OR_PARTITION = 3
INVALID_TOPIC_EXCEPTION = 17
ILLEGAL_SASL_STATE = 34
FETCH_SESSION_ID_NOT_FOUND = 70
INVALID_FETCH_SESSION_EPOCH = 71
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 76 - 1
UNKNOWN_TOPIC_ID = 100


def fetch(topic: str, partition: int, offset: int, **more: int) -> FetchRequest:
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(
                        partition=partition,
                        fetch_offset=offset,
                        partition_max_bytes=1 << 20,
                        **more,
                    )
                ],
            )
        ],
    )


def fetch_error(client: WireClient, request: FetchRequest) -> int:
    response = client.call(request, 11)
    return int(response.error_code or response.responses[0].partitions[0].error_code)


@pytest.mark.parametrize("offset", [-1, 1, 2**62])
def test_offset_outside_the_log_is_out_of_range(
    client: WireClient, make_topic: MakeTopic, offset: int
) -> None:
    """The end itself is in range, for it is where the next record will be."""
    topic = make_topic()

    assert fetch_error(client, fetch(topic, 0, offset)) == OFFSET_OUT_OF_RANGE
    assert fetch_error(client, fetch(topic, 0, 0)) == 0


@pytest.mark.parametrize("partition", [7, -1])
def test_partition_that_is_not_there_is_named_unknown(
    client: WireClient, make_topic: MakeTopic, partition: int
) -> None:
    topic = make_topic()

    assert fetch_error(client, fetch(topic, partition, 0)) == UNKNOWN_TOPIC_OR_PARTITION
    assert fetch_error(client, fetch("never-made", 0, 0)) == UNKNOWN_TOPIC_OR_PARTITION


def test_leader_epoch_of_another_term_is_refused(client: WireClient, make_topic: MakeTopic) -> None:
    """A client that knows a newer epoch than the leader is told so (KIP-320)."""
    topic = make_topic()

    ahead = fetch(topic, 0, 0, current_leader_epoch=5)

    assert fetch_error(client, ahead) == UNKNOWN_LEADER_EPOCH


def test_fetch_session_that_never_was_is_not_found(
    client: WireClient, make_topic: MakeTopic
) -> None:
    """The client then starts a session anew (KIP-227)."""
    request = fetch(make_topic(), 0, 0)
    request.session_id, request.session_epoch = 12345, 3

    assert fetch_error(client, request) == FETCH_SESSION_ID_NOT_FOUND


def test_unknown_topic_id_is_named_so(client: WireClient) -> None:
    request = fetch("", 0, 0)
    request.topics[0].topic_id = uuid.UUID(int=77)

    response = client.call(request, 13)

    assert response.responses[0].partitions[0].error_code == UNKNOWN_TOPIC_ID


def test_metadata_without_creation_names_the_unknown_topic(client: WireClient) -> None:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="nobody-asked")], allow_auto_topic_creation=False
    )

    (topic,) = client.call(request, 8).topics

    assert (topic.name, topic.error_code) == ("nobody-asked", UNKNOWN_TOPIC_OR_PARTITION)


@pytest.mark.parametrize("name", ["no spaces", "..", "a/b", "x" * 250])
def test_name_that_no_topic_may_have_is_refused(client: WireClient, name: str) -> None:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True
    )

    (topic,) = client.call(request, 8).topics

    assert topic.error_code == INVALID_TOPIC_EXCEPTION


def test_offsets_of_unknown_partitions_are_refused_one_by_one(
    client: WireClient, make_topic: MakeTopic
) -> None:
    """What is there is answered beside what is not."""
    topic = make_topic()
    partitions = [ListOffsetsPartition(partition_index=p, timestamp=-1) for p in (0, 5)]

    response = client.call(
        ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=partitions)]
        ),
        5,
    )
    codes = {p.partition_index: p.error_code for p in response.topics[0].partitions}

    assert codes == {0: 0, 5: UNKNOWN_TOPIC_OR_PARTITION}


def test_records_beyond_the_end_cannot_be_deleted(
    client: WireClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    partitions = [DeleteRecordsPartition(partition_index=0, offset=50)]

    response = client.call(
        DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic, partitions=partitions)], timeout_ms=5000
        ),
        1,
    )

    assert response.topics[0].partitions[0].error_code == OFFSET_OUT_OF_RANGE


def test_epoch_of_an_unknown_partition_is_refused(client: WireClient) -> None:
    partitions = [OffsetForLeaderPartition(partition=0, leader_epoch=0, current_leader_epoch=-1)]

    response = client.call(
        OffsetForLeaderEpochRequest(
            replica_id=-2, topics=[OffsetForLeaderTopic(topic="never-made", partitions=partitions)]
        ),
        3,
    )

    assert response.topics[0].partitions[0].error_code == UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (SaslHandshakeRequest(mechanism="PLAIN"), 1),
        (SaslAuthenticateRequest(auth_bytes=b"\0user\0secret"), 2),
    ],
    ids=["handshake", "authenticate"],
)
def test_sasl_on_a_plaintext_listener_is_an_illegal_state(
    client: WireClient, message: Message, version: int
) -> None:
    """Each time, and the connection serves on."""
    for _ in range(2):
        assert client.call(message, version).error_code == ILLEGAL_SASL_STATE
    client.call(MetadataRequest(topics=[]), 9)
