"""Clients do not write into the topics of the coordinators."""

import time
from collections.abc import Iterator
from uuid import UUID

import pytest
from rig.nodes import Node
from rig.wire_client import WireClient

from ottla.base.errors import ErrorCode
from ottla.record.builder import BatchBuilder
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    InitProducerIdRequest,
)

INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")
PATIENCE_S = 90
# A producer id of its own, so that no other test's sequence is in the way.
PRODUCER = {"producer_id": 4711, "producer_epoch": 0, "base_sequence": 0}


def batch(**attributes: int | bool) -> bytes:
    """A record that no coordinator knows."""
    builder = BatchBuilder(**attributes)
    builder.append(int(time.time() * 1000), b"\x00\x63rubbish", b"rubbish")
    return bytes(builder.build())


@pytest.fixture(scope="module")
def topic_ids(node: Node) -> dict[str, UUID]:
    """The internal topics, made by their first use (the last one by its name), and led."""
    with WireClient(node.port) as client:
        created = CreatableTopic(name=INTERNAL[2], num_partitions=1, replication_factor=1)
        client.call(CreateTopicsRequest(topics=[created], timeout_ms=30_000), 7)
        for kind in (0, 1):
            client.call(FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"]), 4)
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in INTERNAL])
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            found = client.call(asked, 12).topics
            if all(t.error_code == 0 and t.partitions[0].leader_id >= 0 for t in found):
                return {each.name: each.topic_id for each in found}
            time.sleep(0.05)
    raise TimeoutError("the internal topics have no leaders")


@pytest.fixture
def admin(node: Node) -> Iterator[WireClient]:
    with WireClient(node.port, client_id="__admin_client") as made:
        yield made


def produced(client: WireClient, topic: str, topic_id: UUID, records: bytes, version: int) -> int:
    """The error code of the only partition."""
    data = TopicProduceData(
        name=topic,
        topic_id=topic_id,
        partition_data=[PartitionProduceData(index=0, records=records)],
    )
    if version >= 13:
        data.name = ""
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data])
    code: int = client.call(request, version).responses[0].partition_responses[0].error_code
    return code


def produced_by_the_admin(
    admin: WireClient, topic: str, topic_id: UUID, records: bytes, version: int
) -> int:
    """Waits until the leader serves: metadata may name it earlier."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        code = produced(admin, topic, topic_id, records, version)
        if code not in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            return code
        time.sleep(0.05)
    raise TimeoutError(f"{topic} is not led")


@pytest.mark.parametrize("topic", INTERNAL)
@pytest.mark.parametrize("version", [3, 9, 12, 13])
def test_only_the_admin_client_produces_into_an_internal_topic(
    client: WireClient, admin: WireClient, topic_ids: dict[str, UUID], topic: str, version: int
) -> None:
    """Repeated on one connection, and after the admin client did: nothing is learnt."""
    topic_id = topic_ids[topic]
    keyed = batch()
    assert produced_by_the_admin(admin, topic, topic_id, keyed, version) == ErrorCode.NONE
    for records in (keyed, keyed, batch(**PRODUCER), keyed):
        assert (
            produced(client, topic, topic_id, records, version) == ErrorCode.INVALID_TOPIC_EXCEPTION
        )
    for _ in range(3):
        assert produced(admin, topic, topic_id, keyed, version) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("version", "code"),
    [(11, ErrorCode.TRANSACTION_ABORTABLE), (12, ErrorCode.INVALID_TOPIC_EXCEPTION)],
)
def test_no_transaction_reaches_into_an_internal_topic(
    client: WireClient, topic_ids: dict[str, UUID], version: int, code: ErrorCode
) -> None:
    """Not by adding the partition, nor by producing: up to 11 it would have to be added before."""
    transactional_id = f"reaching-{version}"
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        begun = client.call(
            InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000),
            4,
        )
        if begun.error_code == ErrorCode.NONE:
            break
        time.sleep(0.1)
    adding = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=begun.producer_id,
        v3_and_below_producer_epoch=begun.producer_epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in INTERNAL
        ],
    )
    answer = client.call(adding, 3)
    assert [
        each.results_by_partition[0].partition_error_code
        for each in answer.results_by_topic_v3_and_below
    ] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 3
    records = batch(
        producer_id=begun.producer_id,
        producer_epoch=begun.producer_epoch,
        base_sequence=0,
        transactional=True,
    )
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name=name,
                partition_data=[PartitionProduceData(index=0, records=records)],
            )
            for name in topic_ids
        ],
    )
    answer = client.call(request, version)
    assert [each.partition_responses[0].error_code for each in answer.responses] == [code] * 3


def test_records_of_internal_topics_are_not_deleted_by_clients(
    client: WireClient, admin: WireClient, topic_ids: dict[str, UUID]
) -> None:
    """Not by the admin client either; a partition that does not exist is unknown."""
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=name,
                partitions=[
                    DeleteRecordsPartition(partition_index=index, offset=-1) for index in (0, 999)
                ],
            )
            for name in topic_ids
        ],
        timeout_ms=30_000,
    )
    for asker in (client, admin):
        answer = asker.call(request, 2)
        assert [each.error_code for topic in answer.topics for each in topic.partitions] == [
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ] * 3
