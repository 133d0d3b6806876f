"""Metadata, DescribeCluster, DescribeTopicPartitions: what clients are told of the cluster."""

import logging
from uuid import UUID

import pytest

from ottla.base.errors import ErrorCode
from ottla.broker.partitions.partitions import StopOrder
from ottla.metadata.topic_plan import RequestedTopic
from ottla.wire.messages.cluster import DescribeClusterRequest
from ottla.wire.messages.metadata import (
    Cursor,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    TopicRequest,
)
from tests.integration.broker.inprocess import run

NOT_ASKED = -2147483648


def asking(*names, create=False, **named):
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create, **named)


async def make(caller, *topics):
    outcomes = await caller.broker.parts.metadata.topics.create(
        [RequestedTopic(n, count) for n, count in topics]
    )
    return [outcome.topic.id for outcome in outcomes]


@pytest.mark.parametrize("version", range(14))
def test_every_version_tells_brokers_and_partitions(version):
    """Versions 0-13 (PROTOCOL: Metadata MUST)."""

    async def scenario(caller):
        (topic_id,) = await make(caller, ("t", 2))
        answer = await caller.call(asking("t", create=version < 4), version)
        (broker,) = answer.brokers
        assert (broker.node_id, broker.host) == (1, "127.0.0.1")
        (topic,) = answer.topics
        assert (topic.error_code, topic.name) == (0, "t")
        assert topic.topic_id == (topic_id if version >= 10 else UUID(int=0))
        assert [(p.partition_index, p.leader_id, p.isr_nodes) for p in topic.partitions] == [
            (0, 1, [1]),
            (1, 1, [1]),
        ]
        if version >= 1:
            assert answer.controller_id == 1
        if version >= 2:
            assert answer.cluster_id == caller.broker.parts.cluster.view.cluster_id
        if version >= 7:
            assert topic.partitions[0].leader_epoch == 0

    run(scenario)


def test_who_gave_a_partition_up_names_itself_no_more():
    """Its image may still say so: a client sent back to it would ask again only much later."""

    async def scenario(caller):
        await make(caller, ("t", 2))
        await caller.broker.partitions.stop([StopOrder("t", 1, -1, delete=False)])
        answer = await caller.call(asking("t"), 13)
        assert [(p.error_code, p.leader_id) for p in answer.topics[0].partitions] == [
            (ErrorCode.NONE, 1),
            (ErrorCode.LEADER_NOT_AVAILABLE, -1),
        ]

    run(scenario)


def test_clients_are_told_the_address_they_reached():
    """With nothing advertised, whatever the socket's own end is works for this client."""

    async def scenario(caller):
        (broker,) = (await caller.call(asking(), 12)).brokers
        assert (broker.host, broker.port) == ("127.0.0.1", caller.broker.port)

    run(scenario, {"listeners": "PLAINTEXT://0.0.0.0:0"})


def test_clients_are_told_the_advertised_address_where_there_is_one():
    """Then it is the operator who knows."""

    async def scenario(caller):
        (broker,) = (await caller.call(asking(), 12)).brokers
        assert (broker.host, broker.port, broker.rack) == ("kafka.example", 1234, "r1")

    run(scenario, {"advertised.listeners": "PLAINTEXT://kafka.example:1234", "broker.rack": "r1"})


def test_null_asks_for_all_topics_and_an_empty_list_for_none():
    """Except in version 0, where an empty list means all."""

    async def scenario(caller):
        await make(caller, ("t", 1), ("u", 1))

        async def names(topics, version):
            request = MetadataRequest(topics=topics)
            return sorted(t.name for t in (await caller.call(request, version)).topics)

        assert await names([], 0) == ["t", "u"]
        assert await names([], 1) == []
        assert await names(None, 1) == ["t", "u"]
        assert await names(None, 12) == ["t", "u"]

    run(scenario)


def test_an_unknown_topic_is_created_where_that_is_allowed():
    """The answer waits for it and is complete."""

    async def scenario(caller):
        (topic,) = (await caller.call(asking("new", create=True), 12)).topics
        assert (topic.error_code, len(topic.partitions)) == (0, 3)
        assert caller.broker.partitions.get("new", 2).log_end_offset == 0

    run(scenario, {"num.partitions": "3"})


@pytest.mark.parametrize("setting", ["true", "false"])
def test_an_unknown_topic_is_not_created_otherwise(setting):
    """Neither when the client does not want it, nor when the broker does not."""

    async def scenario(caller):
        request = asking("new", create=setting == "false")
        (topic,) = (await caller.call(request, 12)).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert caller.broker.image.topic("new") is None

    run(scenario, {"auto.create.topics.enable": setting})


def test_an_illegal_name_is_told_as_such():
    """With the name it was asked by, and without hindering the others."""

    async def scenario(caller):
        answer = await caller.call(asking("a b", "fine", create=True), 12)
        assert [(t.name, t.error_code) for t in answer.topics] == [
            ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
            ("fine", ErrorCode.NONE),
        ]

    run(scenario)


def test_a_topic_that_cannot_be_created_tells_why():
    """One broker cannot hold two replicas."""

    async def scenario(caller):
        (topic,) = (await caller.call(asking("new", create=True), 12)).topics
        assert topic.error_code == ErrorCode.INVALID_REPLICATION_FACTOR

    run(scenario, {"default.replication.factor": "2"})


def test_topics_can_be_asked_for_by_id():
    """From version 12 on; an unknown id has an error of its own (KIP-516)."""

    async def scenario(caller):
        (topic_id,) = await make(caller, ("t", 1))
        wanted = [
            MetadataRequestTopic(name=None, topic_id=topic_id),
            MetadataRequestTopic(name=None, topic_id=UUID(int=9)),
        ]
        answer = await caller.call(MetadataRequest(topics=wanted), 12)
        assert [(t.name, t.topic_id, t.error_code) for t in answer.topics] == [
            ("t", topic_id, 0),
            (None, UUID(int=9), ErrorCode.UNKNOWN_TOPIC_ID),
        ]
        early = await caller.call(
            MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=topic_id)]), 10
        )
        assert early.topics[0].error_code == ErrorCode.INVALID_REQUEST

    run(scenario)


def test_authorized_operations_are_told_when_asked_for():
    """All of them, for there is no authorizer (KIP-430); numbers as Kafka 4.3 sends them."""

    async def scenario(caller):
        await make(caller, ("t", 1))
        plain = await caller.call(asking("t"), 10)
        assert plain.cluster_authorized_operations == NOT_ASKED
        assert plain.topics[0].topic_authorized_operations == NOT_ASKED
        asked = await caller.call(
            asking(
                "t",
                include_cluster_authorized_operations=True,
                include_topic_authorized_operations=True,
            ),
            10,
        )
        assert asked.cluster_authorized_operations == 8096
        assert asked.topics[0].topic_authorized_operations == 3576

    run(scenario)


def test_describe_cluster_tells_brokers_and_controller():
    """KIP-700, with the address the client reached."""

    async def scenario(caller):
        for version in range(3):
            answer = await caller.call(DescribeClusterRequest(), version)
            assert answer.cluster_id == caller.broker.parts.cluster.view.cluster_id
            assert answer.controller_id == 1
            assert [(b.broker_id, b.host, b.port) for b in answer.brokers] == [
                (1, "127.0.0.1", caller.broker.port)
            ]
            assert answer.cluster_authorized_operations == NOT_ASKED

    run(scenario)


def test_describe_cluster_knows_no_controllers():
    """Who asks for them is at the wrong place (KIP-919)."""

    async def scenario(caller):
        for kind, code in ((2, "MISMATCHED_ENDPOINT_TYPE"), (9, "UNSUPPORTED_ENDPOINT_TYPE")):
            answer = await caller.call(DescribeClusterRequest(endpoint_type=kind), 1)
            assert answer.error_code == ErrorCode[code]

    run(scenario)


async def pages(caller, names, limit):
    cursor, told = None, []
    while True:
        answer = await caller.call(
            DescribeTopicPartitionsRequest(
                topics=[TopicRequest(name=name) for name in names],
                response_partition_limit=limit,
                cursor=cursor,
            ),
            0,
        )
        told.append([(t.name, [p.partition_index for p in t.partitions]) for t in answer.topics])
        if answer.next_cursor is None:
            return told
        cursor = Cursor(
            topic_name=answer.next_cursor.topic_name,
            partition_index=answer.next_cursor.partition_index,
        )


def test_partitions_are_described_a_page_at_a_time():
    """In the order of names, going on where the cursor says (KIP-966)."""

    async def scenario(caller):
        await make(caller, ("b", 3), ("a", 2))
        assert await pages(caller, [], 10) == [[("a", [0, 1]), ("b", [0, 1, 2])]]
        assert await pages(caller, ["b", "a", "b"], 2) == [
            [("a", [0, 1])],
            [("b", [0, 1])],
            [("b", [2])],
        ]
        assert await pages(caller, ["a"], 1) == [[("a", [0])], [("a", [1])]]

    run(scenario)


def test_a_page_is_never_longer_than_the_broker_allows():
    """max.request.partition.size.limit."""

    async def scenario(caller):
        await make(caller, ("a", 3))
        assert await pages(caller, ["a"], 100) == [[("a", [0, 1])], [("a", [2])]]

    run(scenario, {"max.request.partition.size.limit": "2"})


def test_an_unknown_topic_in_a_page_tells_its_error():
    """And takes none of the page's room."""

    async def scenario(caller):
        await make(caller, ("b", 1))
        answer = await caller.call(
            DescribeTopicPartitionsRequest(
                topics=[TopicRequest(name=n) for n in ("a", "b", "c c")],
                response_partition_limit=1,
            ),
            0,
        )
        assert [(t.name, t.error_code) for t in answer.topics] == [
            ("a", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("b", 0),
            ("c c", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ]

    run(scenario)


@pytest.mark.parametrize("name", [None, "", "other", "absent", "no/name"])
@pytest.mark.parametrize("create", [False, True])
def test_an_id_comes_before_a_name(name, create):
    """Java asks by id with an empty name beside it; no name is looked at, or created, then."""

    async def scenario(caller):
        topic_id, _ = await make(caller, ("t", 2), ("other", 1))
        unknown_id = UUID(int=7)
        asked = [
            MetadataRequestTopic(name=name, topic_id=topic_id),
            MetadataRequestTopic(name=name, topic_id=unknown_id),
        ]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=create)
        answer = await caller.call(request, 13)
        assert [(t.name, t.topic_id, t.error_code, len(t.partitions)) for t in answer.topics] == [
            ("t", topic_id, ErrorCode.NONE, 2),
            (None, unknown_id, ErrorCode.UNKNOWN_TOPIC_ID, 0),
        ]
        assert set(caller.broker.image.topics) == {"t", "other"}

    run(scenario)


def test_a_topic_is_told_once():
    """However often it is asked for, and whether by name or by id."""

    async def scenario(caller):
        (topic_id,) = await make(caller, ("t", 2))
        asked = [
            MetadataRequestTopic(name="t"),
            MetadataRequestTopic(name="t"),
            MetadataRequestTopic(name="", topic_id=topic_id),
            MetadataRequestTopic(name="absent"),
            MetadataRequestTopic(name="absent"),
        ]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
        answer = await caller.call(request, 12)
        assert [topic.name for topic in answer.topics] == ["t", "absent"]

    run(scenario)


@pytest.mark.parametrize(
    ("setting", "value", "code"),
    [
        ("num.partitions", "10001", ErrorCode.POLICY_VIOLATION),
        ("default.replication.factor", "2", ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_a_topic_that_cannot_be_created_automatically_is_logged_once(setting, value, code, caplog):
    """With the setting that stands in the way: the client is given a code and no message."""

    async def scenario(caller):
        for _ in range(3):
            (topic,) = (await caller.call(asking("t", create=True), 12)).topics
            assert (topic.error_code, topic.partitions) == (code, [])

    with caplog.at_level(logging.WARNING, "ottla"):
        run(scenario, {setting: value})
    (line,) = [each.message for each in caplog.records if "topic t is not" in each.message]
    assert f"{code.name}, " in line
    assert f"change {setting} in this broker's server.properties" in line
    assert value in line
