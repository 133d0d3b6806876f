"""ApiVersions, Metadata, DescribeCluster, DescribeTopicPartitions: what clients learn."""

from dataclasses import replace
from uuid import UUID

import pytest

from ottla.base.errors import ErrorCode
from ottla.base.ids import BrokerId
from ottla.broker.handlers.api_versions import ApiVersions
from ottla.broker.handlers.cluster import DescribeCluster
from ottla.broker.handlers.describe_topic_partitions import DescribeTopicPartitions
from ottla.broker.handlers.metadata import Metadata
from ottla.coordination.interface.store import Create
from ottla.metadata import paths
from ottla.metadata.image import BrokerImage, Endpoint
from ottla.metadata.nodes import encode_broker
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsRequest
from ottla.wire.messages.cluster import DescribeClusterRequest
from ottla.wire.messages.metadata import (
    Cursor,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    TopicRequest,
)

from .cluster_world import call, play
from .replica_world import Line

NO_ID = UUID(int=0)
BROKER_1 = (1, "broker1", 9092, "r1")


def api_versions(world):
    ranges = [
        ApiVersion(api_key=3, min_version=0, max_version=13),
        ApiVersion(api_key=1002, min_version=0, max_version=0),
    ]
    return ApiVersions(world.view, ranges)


def hello(name, version="1.0"):
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


def test_clients_learn_which_apis_are_served():
    """Those of Ottla's own only where the client calls itself Ottla; the name is remembered."""

    async def scenario(world):
        line = Line()
        for name, keys in (("rdkafka", [3]), ("ottla-cli", [3, 1002])):
            answer = await call(api_versions(world), hello(name), 4, line=line)
            assert [api.api_key for api in answer.api_keys] == keys
            assert line.software == name
        (first, *_) = answer.api_keys
        assert (first.min_version, first.max_version) == (0, 13)

    play(scenario)


def test_clients_learn_the_levels_of_features():
    """One of level 0 is not finalized; before version 4 only those that begin above 0 are told."""

    async def scenario(world):
        image = world.view.image
        world.view.replace(image.with_features({"group.version": 1, "share.version": 0}, 8))
        for version, supported in (
            (
                4,
                [
                    "group.version",
                    "transaction.version",
                    "eligible.leader.replicas.version",
                    "share.version",
                ],
            ),
            (3, ["eligible.leader.replicas.version"]),
        ):
            answer = await call(api_versions(world), hello("x"), version)
            assert answer.finalized_features_epoch == 8
            finalized = [(f.name, f.max_version_level) for f in answer.finalized_features]
            assert finalized == [("group.version", 1)]
            assert [f.name for f in answer.supported_features] == supported
        assert (await call(api_versions(world), hello(""), 2)).error_code == 0

    play(scenario)


@pytest.mark.parametrize("request_", [hello("a b"), hello("x", "")])
def test_a_client_with_an_illegal_name_is_refused(request_):
    """The answer has no ranges, and the name is not kept."""

    async def scenario(world):
        line = Line()
        answer = await call(api_versions(world), request_, 4, line=line)
        assert (answer.error_code, answer.api_keys) == (ErrorCode.INVALID_REQUEST, [])
        assert line.software == ""

    play(scenario)


def metadata(world):
    return Metadata(
        world.view,
        world.runtime,
        world.partitions,
        world.settings,
        world.topics,
        world.peers,
        world.departed,
    )


def naming(*names, create=False, **fields):
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create, **fields)


def brokers(answer):
    return [(b.node_id, b.host, b.port, b.rack) for b in answer.brokers]


def led(topic):
    return [
        (p.partition_index, ErrorCode(p.error_code).name, p.leader_id) for p in topic.partitions
    ]


def test_metadata_names_brokers_topics_and_leaders():
    """A topic that is asked for twice is answered once, by name or by id."""

    async def scenario(world):
        topic_id = await world.make("t", 2)
        request = naming("t", "t")
        request.topics.append(MetadataRequestTopic(name=None, topic_id=topic_id))
        answer = await call(metadata(world), request, 13)
        assert brokers(answer) == [BROKER_1]
        assert (answer.cluster_id, answer.controller_id) == ("cluster", 1)
        (topic,) = answer.topics
        assert (topic.name, topic.topic_id, topic.error_code) == ("t", topic_id, 0)
        assert led(topic) == [(0, "NONE", 1), (1, "NONE", 1)]
        assert [(p.replica_nodes, p.isr_nodes) for p in topic.partitions] == [([1], [1])] * 2

    play(scenario)


def test_all_topics_are_asked_for_by_null_and_in_version_0_by_an_empty_list():
    """From version 1 on an empty list asks for none."""

    async def scenario(world):
        await world.make("t")
        await world.make("u")
        for topics, version, names in (
            ([], 0, ["t", "u"]),
            ([], 1, []),
            (None, 1, ["t", "u"]),
            (None, 13, ["t", "u"]),
        ):
            answer = await call(metadata(world), MetadataRequest(topics=topics), version)
            assert sorted(topic.name for topic in answer.topics) == names

    play(scenario)


def test_what_is_unknown_is_created_where_client_and_broker_agree():
    """The answer waits for the topic; a name that cannot be one keeps its own error."""

    async def scenario(world):
        answer = await call(metadata(world), naming("new", "a b"), 13)
        assert [(t.name, t.error_code) for t in answer.topics] == [
            ("new", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ]
        answer = await call(metadata(world), naming("new", "a b", create=True), 13)
        assert [(t.name, t.error_code) for t in answer.topics] == [
            ("new", ErrorCode.NONE),
            ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ]
        assert world.partitions.get("new", 0).log_end_offset == 0
        strange = MetadataRequestTopic(name=None, topic_id=UUID(int=9))
        answer = await call(metadata(world), MetadataRequest(topics=[strange]), 13)
        assert [(t.name, t.topic_id, t.error_code) for t in answer.topics] == [
            (None, UUID(int=9), ErrorCode.UNKNOWN_TOPIC_ID)
        ]

    play(scenario)


def test_a_topic_that_cannot_be_created_says_why():
    """One broker cannot hold two replicas."""

    async def scenario(world):
        (topic,) = (await call(metadata(world), naming("new", create=True), 13)).topics
        assert (topic.name, topic.error_code) == ("new", ErrorCode.INVALID_REPLICATION_FACTOR)

    play(scenario, {"default.replication.factor": "2"})


def test_a_leader_that_is_gone_or_superseded_is_not_named():
    """Broker 9 is unknown; partition u-0 is shown as led here, and was given up."""

    async def scenario(world):
        world.know(2)
        await world.host("lost", 7, leader=9, replicas=(9, 1), isr=(9,), epoch=1)
        await world.host("other", 8, leader=2, replicas=(2, 1), epoch=1)
        await world.host("u", 9, leader=1, replicas=(1, 2), epoch=1)
        shown = world.view.image
        await world.host("u", 9, leader=2, replicas=(1, 2), epoch=2)
        world.view.replace(shown)
        answer = await call(metadata(world), naming("lost", "other", "u"), 13)
        assert [led(topic) for topic in answer.topics] == [
            [(0, "LEADER_NOT_AVAILABLE", -1)],
            [(0, "NONE", 2)],
            [(0, "LEADER_NOT_AVAILABLE", -1)],
        ]
        assert answer.topics[0].partitions[0].offline_replicas == [9]
        (old,) = (await call(metadata(world), naming("lost", create=True), 0)).topics
        assert old.partitions[0].replica_nodes == [1]

    play(scenario)


def test_a_kept_answer_for_many_partitions_is_given_while_nothing_has_changed():
    """Each change of image, brokers or own replica is in the next answer."""

    async def scenario(world):
        world.know(2)
        await world.host("t", 9, leader=2, replicas=(2, 1), epoch=1)
        topic = world.view.image.topics["t"]
        many = tuple(topic.partitions * 600)
        world.view.replace(world.view.image.with_topic(replace(topic, partitions=many)))
        handler = metadata(world)

        async def leaders(version=13):
            (answer,) = (await call(handler, naming("t"), version)).topics
            return [each.leader_id for each in answer.partitions]

        assert await leaders() == [2] * 600
        made = handler._made
        assert await leaders() == [2] * 600
        assert await leaders(0) == [2] * 600
        assert handler._made is made
        # The replica knows another leader than the image.
        shown = world.view.image
        await world.host("t", 9, leader=2, replicas=(2, 1), epoch=2)
        world.view.replace(shown)
        assert await leaders() == [-1, *[2] * 599]
        topic = world.view.image.topics["t"]
        newer = tuple(each._replace(leader_epoch=2) for each in many)
        world.view.replace(world.view.image.with_topic(replace(topic, partitions=newer)))
        assert await leaders() == [2] * 600
        image = world.view.image
        world.view.replace(replace(image, brokers={1: image.brokers[1]}))
        (answer,) = (await call(handler, naming("t"), 13)).topics
        assert answer.partitions[7].offline_replicas == [2]
        (old,) = (await call(handler, naming("t"), 0)).topics
        assert old.partitions[7].replica_nodes == [1]
        (answer,) = (await call(handler, naming("t"), 13)).topics
        assert answer.partitions[7].replica_nodes == [2, 1]

    play(scenario)


def test_librdkafka_still_learns_of_a_broker_that_died():
    """Other clients do not."""

    async def scenario(world):
        world.know(2)
        world.departed.on_image(world.view.image.brokers, 0)
        image = world.view.image
        left = {each: broker for each, broker in image.brokers.items() if each != 2}
        world.view.replace(replace(image, brokers=left))
        world.departed.on_image(left, 0)
        for software, named in (("rdkafka", [1, 2]), ("apache-kafka-java", [1]), ("ottla", [1])):
            line = Line()
            line.software = software
            answer = await call(metadata(world), naming(), 13, line=line)
            assert [broker.node_id for broker in answer.brokers] == named

    play(scenario)


def test_ids_are_refused_before_version_12_on_every_topic_of_the_request():
    """From version 13 on the answer as a whole has the error, too."""

    async def scenario(world):
        request = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=UUID(int=9))])
        answer = await call(metadata(world), request, 11)
        assert [(t.error_code, t.topic_id) for t in answer.topics] == [
            (ErrorCode.INVALID_REQUEST, UUID(int=9))
        ]
        whole = Metadata.on_error(naming("t"), ErrorCode.REBOOTSTRAP_REQUIRED, None, 13)
        assert whole.error_code == ErrorCode.REBOOTSTRAP_REQUIRED
        assert [(t.name, t.error_code) for t in whole.topics] == [
            ("t", ErrorCode.REBOOTSTRAP_REQUIRED)
        ]

    play(scenario)


def test_the_cluster_is_described_to_clients_of_brokers():
    """With what a client may do, where it asks; there are no separate controllers to describe."""

    async def scenario(world):
        handler = DescribeCluster(world.view, world.store)
        answer = await call(handler, DescribeClusterRequest())
        assert (answer.error_code, answer.cluster_id, answer.controller_id) == (0, "cluster", 1)
        assert [(b.broker_id, b.host, b.port, b.rack) for b in answer.brokers] == [BROKER_1]
        assert answer.cluster_authorized_operations == -2147483648
        asked = DescribeClusterRequest(include_cluster_authorized_operations=True)
        assert (await call(handler, asked)).cluster_authorized_operations == 8096
        for kind, code in (
            (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
            (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        ):
            refused = await call(handler, DescribeClusterRequest(endpoint_type=kind))
            assert (refused.error_code, refused.endpoint_type) == (code, kind)
            assert refused.brokers == []

    play(scenario)


def test_a_dead_broker_is_described_as_fenced_to_those_who_ask():
    """KIP-1073: it registered once and was not removed; in other answers it is missing."""

    async def scenario(world):
        dead = BrokerImage(BrokerId(7), {"PLAINTEXT": Endpoint("seven", 9097)}, "r7")
        await world.store.multi([Create(paths.broker_epoch(7), encode_broker(dead, 5, "boot"))])
        handler = DescribeCluster(world.view, world.store)
        asked = DescribeClusterRequest(include_fenced_brokers=True)
        brokers = (await call(handler, asked, 2)).brokers
        assert [(b.broker_id, b.host, b.port, b.rack, b.is_fenced) for b in brokers] == [
            (*BROKER_1, False),
            (7, "seven", 9097, "r7", True),
        ]
        assert len((await call(handler, DescribeClusterRequest(), 2)).brokers) == 1

    play(scenario)


def described(answer):
    topics = [
        (t.name, ErrorCode(t.error_code).name, [p.partition_index for p in t.partitions])
        for t in answer.topics
    ]
    cursor = answer.next_cursor
    return topics, cursor and (cursor.topic_name, cursor.partition_index)


def pages(*names, limit=2000, cursor=None):
    return DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=cursor and Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


def test_partitions_are_described_a_page_at_a_time():
    """In the order of the names; the cursor of one page begins the next."""

    async def scenario(world):
        await world.make("b", 3)
        await world.make("a")
        handler = DescribeTopicPartitions(world.view, world.settings)
        first = await call(handler, pages(limit=3))
        assert described(first) == ([("a", "NONE", [0]), ("b", "NONE", [0, 1])], ("b", 2))
        assert first.topics[0].partitions[0].leader_id == 1
        rest = await call(handler, pages(limit=3, cursor=("b", 2)))
        assert described(rest) == ([("b", "NONE", [2])], None)
        missing = await call(handler, pages("none", "a"))
        assert described(missing) == (
            [("a", "NONE", [0]), ("none", "UNKNOWN_TOPIC_OR_PARTITION", [])],
            None,
        )

    play(scenario)


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"cursor": ("a", -1)}])
def test_a_page_of_nothing_and_a_cursor_before_all_are_refused(wrong):
    """On every topic asked for."""

    async def scenario(world):
        handler = DescribeTopicPartitions(world.view, world.settings)
        answer = await call(handler, pages("a", "b", **wrong))
        assert described(answer) == (
            [("a", "INVALID_REQUEST", []), ("b", "INVALID_REQUEST", [])],
            None,
        )

    play(scenario)
