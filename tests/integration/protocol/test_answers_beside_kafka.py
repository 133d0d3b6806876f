"""Administrative requests that are wrong or odd: Ottla answers with Kafka's error codes."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from rig.broker import ottla
from rig.kafka import available, kafka
from rig.wire_client import WireClient

from ottla.wire.messages import (
    configs,
    group_offsets,
    reassignments,
    share_group_offsets,
    user_scram_credentials,
)
from ottla.wire.messages.consumer_groups import ConsumerGroupDescribeRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.metadata import (
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    TopicRequest,
)
from ottla.wire.messages.reassignments import ElectLeadersRequest, TopicPartitions
from ottla.wire.messages.share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from ottla.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from ottla.wire.notation import Message

_PATIENCE_S = 60.0
_COMPARED = ("name", "topic", "topic_name", "group_id", "user", "resource_name", "mechanism")
_NUMBERS = ("partition_index", "partition_id", "topic_authorized_operations", "start_offset")
_STORE = "ssl.keystore.location"
# The setting of a broker, a value, and whether it is of one broker.
_SETTINGS = (
    (_STORE, "/nowhere.pem"),
    ("ssl.truststore.type", "PEM"),
    ("ssl.key.password", "x"),
    ("ssl.client.auth", "required"),
    (f"listener.name.plaintext.{_STORE}", "/nowhere.pem"),
    ("listener.name.plaintext.ssl.client.auth", "required"),
    ("listener.name.plaintext.max.connections", "10"),
)


def _set(broker: str, name: str, value: str) -> Message:
    config = configs.AlterableConfig(name=name, config_operation=0, value=value)
    resource = configs.AlterConfigsResource(resource_type=4, resource_name=broker, configs=[config])
    return configs.IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)


def _move(*parts: tuple[str, int, list[int] | None]) -> Message:
    return reassignments.AlterPartitionReassignmentsRequest(
        topics=[
            reassignments.ReassignableTopic(
                name=name,
                partitions=[
                    reassignments.ReassignablePartition(partition_index=index, replicas=replicas)
                ],
            )
            for name, index, replicas in parts
        ]
    )


def _uncommit(group: str, *parts: tuple[str, int]) -> Message:
    return group_offsets.OffsetDeleteRequest(
        group_id=group,
        topics=[
            group_offsets.OffsetDeleteRequestTopic(
                name=name,
                partitions=[group_offsets.OffsetDeleteRequestPartition(partition_index=index)],
            )
            for name, index in parts
        ],
    )


def _described(group: str, *names: str) -> Message:
    topics = [
        share_group_offsets.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=[0])
        for name in names
    ]
    one = share_group_offsets.DescribeShareGroupOffsetsRequestGroup(
        group_id=group, topics=topics or None
    )
    return share_group_offsets.DescribeShareGroupOffsetsRequest(groups=[one])


def _altered(group: str, *names: str) -> Message:
    parts = [
        share_group_offsets.AlterShareGroupOffsetsRequestPartition(
            partition_index=0, start_offset=0
        )
    ]
    return share_group_offsets.AlterShareGroupOffsetsRequest(
        group_id=group,
        topics=[
            share_group_offsets.AlterShareGroupOffsetsRequestTopic(
                topic_name=name, partitions=parts
            )
            for name in names
        ],
    )


def _users(*names: str) -> Message:
    return DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names])


def _made(user: str, size: int) -> Message:
    upsertion = user_scram_credentials.ScramCredentialUpsertion(
        name=user, mechanism=2, iterations=4096, salt=b"salt", salted_password=b"x" * size
    )
    return user_scram_credentials.AlterUserScramCredentialsRequest(upsertions=[upsertion])


def _removed(user: str, mechanism: int) -> Message:
    deletion = user_scram_credentials.ScramCredentialDeletion(name=user, mechanism=mechanism)
    return user_scram_credentials.AlterUserScramCredentialsRequest(deletions=[deletion])


def requests() -> Iterator[tuple[Message, int]]:
    """What is sent to both, in this order, with the version."""
    for name, value in _SETTINGS:
        yield _set("1", name, value), 1
        yield _set("", name, value), 1
    yield from ((_removed(user, kind), 0) for user, kind in (("no", 1), ("u", 9), ("", 1)))
    yield from ((_made("made", size), 0) for size in (1, 63, 64, 65))
    yield from ((_users(*names), 0) for names in ((), ("no",), ("",), ("no", "no")))
    for replicas in (None, [1], [], [9], [1, 1], [-1]):
        yield _move(("t", 0, replicas)), 0
    yield _move(("t", 9, [1])), 0
    yield _move(("none", 0, [1])), 0
    yield _move(("t", 0, [1]), ("t", 1, None)), 0
    yield _move(("t", 1, [9]), ("none", 0, [1]), ("t", 0, [1])), 0
    yield _move(("t", 0, [1]), ("t", 0, [1])), 0
    yield _uncommit("g", ("t", 0)), 0
    yield _uncommit("g", ("t", 9)), 0
    yield _uncommit("g", ("none", 0)), 0
    yield _uncommit("g"), 0
    yield _uncommit("nowhere", ("t", 0)), 0
    yield _uncommit("", ("t", 0)), 0
    # What needs no state of share groups, whose topic Kafka makes with three replicas.
    for group in ("nowhere", "g"):
        yield _described(group), 1
        yield _described(group, "none"), 0
    yield _altered("", "t"), 0
    yield _altered("g", "t"), 0
    for group in ("", "g", "nowhere"):
        topic = DeleteShareGroupOffsetsRequestTopic(topic_name="t")
        yield DeleteShareGroupOffsetsRequest(group_id=group, topics=[topic]), 0
    yield ConsumerGroupDescribeRequest(group_ids=[""]), 0
    yield ConsumerGroupDescribeRequest(group_ids=["nowhere"]), 0
    for name in ("none", "bad name"):
        topics = [MetadataRequestTopic(name=name)]
        asked = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        asked.include_topic_authorized_operations = True
        yield asked, 12
        yield DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name)]), 0
    elected = [
        TopicPartitions(topic="t", partitions=[0, 9]),
        TopicPartitions(topic="none", partitions=[0]),
    ]
    yield ElectLeadersRequest(election_type=0, topic_partitions=elected), 2


def _digest(message: Message) -> Any:
    found: list[Any] = []
    for field in type(message).__slots__:
        value = getattr(message, field)
        if field.endswith("error_code") or field in _COMPARED or field in _NUMBERS:
            found.append((field, value))
        elif isinstance(value, list) and value and isinstance(value[0], Message):
            found.append((field, [_digest(one) for one in value]))
    return found


def _answers(port: int) -> list[Any]:
    with WireClient(port) as client:
        topic = CreatableTopic(name="t", num_partitions=2, replication_factor=1)
        client.call(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5)
        committed = [OffsetCommitRequestPartition(partition_index=0, committed_offset=0)]
        commit = OffsetCommitRequest(
            group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=committed)]
        )
        deadline = time.monotonic() + _PATIENCE_S
        while client.call(commit, 8).topics[0].partitions[0].error_code:
            assert time.monotonic() < deadline
            client.call(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
            time.sleep(0.05)
        return [(str(body), _digest(client.call(body, v))) for body, v in requests()]


@pytest.mark.skipif(available() is not None, reason=str(available()))
def test_wrong_requests_have_kafkas_codes_part_by_part() -> None:
    """In the order of the request, with the operations of topics that do not exist."""
    with ottla(settings={"node.id": "1"}) as own, kafka(quick=True) as other:
        ours, kafkas = _answers(own.port), _answers(other.port)
    different = [(a, b) for a, b in zip(ours, kafkas, strict=True) if a != b]
    assert different == []
