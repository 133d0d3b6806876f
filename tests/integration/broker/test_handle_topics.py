"""CreateTopics, CreatePartitions, DeleteTopics, as clients see them."""

from uuid import UUID

import pytest

from ottla.base.errors import ErrorCode
from ottla.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.integration.broker.inprocess import run


def topic(name, partitions=1, factor=1, **configs):
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[
            CreatableTopicConfig(name=k.replace("_", "."), value=v) for k, v in configs.items()
        ],
    )


def creating(*topics, **named):
    return CreateTopicsRequest(topics=list(topics), **named)


def codes(results):
    return {result.name: ErrorCode(result.error_code).name for result in results}


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_created_and_served(version):
    """Versions 2-7; 5 tells counts, 7 the id."""

    async def scenario(caller):
        (result,) = (await caller.call(creating(topic("t", 2)), version)).topics
        assert (result.name, result.error_code, result.error_message) == ("t", 0, None)
        if version >= 5:
            assert (result.num_partitions, result.replication_factor) == (2, 1)
        if version >= 7:
            assert result.topic_id == caller.broker.image.topic("t").id
        assert caller.broker.partitions.get("t", 1).log_end_offset == 0

    run(scenario)


def test_the_answer_tells_the_settings_in_effect():
    """With their sources (KIP-525): 1 the topic's own, 5 a default."""

    async def scenario(caller):
        (result,) = (await caller.call(creating(topic("t", retention_ms="5")), 7)).topics
        told = {c.name: (c.value, c.config_source) for c in result.configs}
        assert len(told) == 38
        assert told["retention.ms"] == ("5", 1)
        assert told["segment.bytes"] == ("1073741824", 5)

    run(scenario)


def test_each_topic_of_a_request_stands_for_itself():
    """In the order asked; a name given twice is created neither time."""

    async def scenario(caller):
        answer = await caller.call(
            creating(
                topic("good"),
                topic("two", factor=2),
                topic("bad name"),
                topic("twice"),
                topic("twice"),
                topic("odd", retention_mss="1"),
                topic("__cluster_metadata"),
                topic("fine"),
            ),
            5,
        )
        assert codes(answer.topics) == {
            "good": "NONE",
            "two": "INVALID_REPLICATION_FACTOR",
            "bad name": "INVALID_TOPIC_EXCEPTION",
            "twice": "INVALID_REQUEST",
            "odd": "INVALID_CONFIG",
            "__cluster_metadata": "INVALID_REQUEST",
            "fine": "NONE",
        }
        assert sorted(caller.broker.image.topics) == ["fine", "good"]

    run(scenario)


@pytest.mark.parametrize(
    ("configs", "why"),
    [
        ({"min_insync_replicas": "2"}, "is above the replication factor 1"),
        ({"segment_bytes": "2000000", "retention_bytes": "1999999"}, "above retention.bytes"),
        ({"segment_ms": "1001", "retention_ms": "1000"}, "above retention.ms"),
        ({"min_compaction_lag_ms": "2", "max_compaction_lag_ms": "1"}, "max.compaction.lag.ms"),
        ({"retention_bytes": "-2"}, "-1 for no limit"),
        ({"segment_bytes": "-1"}, "at least 1048576"),
        ({"segment_bytes": "2147483648"}, "segment.bytes"),
        ({"retention_ms": "9223372036854775808"}, "retention.ms"),
    ],
)
def test_absurd_settings_are_refused_with_the_reason(configs, why):
    """Where they were asked for in so many words; nothing is created."""

    async def scenario(caller):
        (result,) = (await caller.call(creating(topic("t", **configs)), 7)).topics
        assert (result.error_code, dict(caller.broker.image.topics)) == (
            ErrorCode.INVALID_CONFIG,
            {},
        )
        assert why in result.error_message

    run(scenario)


@pytest.mark.parametrize(
    "configs",
    [
        {"retention_bytes": "1000"},
        {"retention_ms": "1000"},
        {"segment_ms": "2000", "retention_ms": "2000"},
        {"segment_bytes": "2000000", "retention_bytes": "-1", "retention_ms": "-1"},
        {"segment_ms": "2000", "retention_ms": "1000", "cleanup_policy": "compact"},
    ],
)
def test_what_is_odd_only_beside_a_default_is_taken(configs):
    """As Kafka takes it: scripts set a small retention and leave segments as they are."""

    async def scenario(caller):
        answer = await caller.call(creating(topic("t", **configs)), 7)
        assert codes(answer.topics) == {"t": "NONE"}

    run(scenario, {"min.insync.replicas": "2"})


def test_a_topic_that_exists_is_not_created_again():
    """Its id and records stay."""

    async def scenario(caller):
        await caller.call(creating(topic("t")), 7)
        before = caller.broker.image.topic("t")
        assert codes((await caller.call(creating(topic("t", 5)), 7)).topics) == {
            "t": "TOPIC_ALREADY_EXISTS"
        }
        assert caller.broker.image.topic("t") is before

    run(scenario)


def test_a_trial_run_creates_nothing():
    """But tells what would be, errors too."""

    async def scenario(caller):
        request = creating(topic("t", -1, -1), topic("u", factor=3), validate_only=True)
        answer = await caller.call(request, 7)
        assert codes(answer.topics) == {"t": "NONE", "u": "INVALID_REPLICATION_FACTOR"}
        assert answer.topics[0].num_partitions == 4
        assert dict(caller.broker.image.topics) == {}

    run(scenario, {"num.partitions": "4"})


def test_replicas_can_be_assigned_by_hand():
    """Counts must be -1 then."""

    async def scenario(caller):
        by_hand = topic("t", -1, -1)
        by_hand.assignments = [
            CreatableReplicaAssignment(partition_index=i, broker_ids=[1]) for i in (1, 0)
        ]
        elsewhere = topic("u", -1, -1)
        elsewhere.assignments = [CreatableReplicaAssignment(partition_index=0, broker_ids=[7])]
        answer = await caller.call(creating(by_hand, elsewhere), 5)
        assert codes(answer.topics) == {"t": "NONE", "u": "INVALID_REPLICA_ASSIGNMENT"}
        assert len(caller.broker.image.topic("t").partitions) == 2

    run(scenario)


def growing(name, count, assignments=None, **named):
    given = None
    if assignments is not None:
        given = [CreatePartitionsAssignment(broker_ids=ids) for ids in assignments]
    wanted = CreatePartitionsTopic(name=name, count=count, assignments=given)
    return CreatePartitionsRequest(topics=[wanted], **named)


@pytest.mark.parametrize("version", range(4))
def test_a_topic_grows(version):
    """Versions 0-3; the new partitions serve at once."""

    async def scenario(caller):
        await caller.call(creating(topic("t")), 5)
        answer = await caller.call(growing("t", 3, [[1], [1]]), version)
        assert codes(answer.results) == {"t": "NONE"}
        assert caller.broker.partitions.get("t", 2).log_end_offset == 0
        assert codes((await caller.call(growing("t", 4), version)).results) == {"t": "NONE"}

    run(scenario)


def test_growth_that_cannot_be_changes_nothing():
    """Kafka's code for each reason."""

    async def scenario(caller):
        await caller.call(creating(topic("t", 2)), 5)
        for request, code in (
            (growing("t", 2), "INVALID_PARTITIONS"),
            (growing("t", 1), "INVALID_PARTITIONS"),
            (growing("nope", 3), "UNKNOWN_TOPIC_OR_PARTITION"),
            (growing("t", 4, [[1]]), "INVALID_REPLICA_ASSIGNMENT"),
            (growing("t", 3, [[5]]), "INVALID_REPLICA_ASSIGNMENT"),
            (growing("t", 3, validate_only=True), "NONE"),
        ):
            (result,) = (await caller.call(request, 3)).results
            assert ErrorCode(result.error_code).name == code
        assert len(caller.broker.image.topic("t").partitions) == 2

    run(scenario)


@pytest.mark.parametrize("version", range(1, 6))
def test_a_topic_is_deleted_by_name(version):
    """Versions 1-5; an unknown one is told so and hinders nothing."""

    async def scenario(caller):
        await caller.call(creating(topic("t")), 5)
        request = DeleteTopicsRequest(topic_names=["t", "nope"])
        answer = await caller.call(request, version)
        assert codes(answer.responses) == {"t": "NONE", "nope": "UNKNOWN_TOPIC_OR_PARTITION"}
        assert caller.broker.image.topic("t") is None
        assert len(caller.broker.partitions) == 0

    run(scenario)


def test_a_topic_is_deleted_by_id():
    """Version 6 (KIP-516)."""

    async def scenario(caller):
        await caller.call(creating(topic("t"), topic("u")), 7)
        topic_id = caller.broker.image.topic("t").id
        wanted = [
            DeleteTopicState(name=None, topic_id=topic_id),
            DeleteTopicState(name=None, topic_id=UUID(int=9)),
            DeleteTopicState(name="u", topic_id=topic_id),
            DeleteTopicState(name=None),
        ]
        answer = await caller.call(DeleteTopicsRequest(topics=wanted), 6)
        found = {(r.name, r.topic_id): ErrorCode(r.error_code).name for r in answer.responses}
        assert found == {
            ("t", topic_id): "NONE",
            (None, UUID(int=9)): "UNKNOWN_TOPIC_ID",
            ("u", topic_id): "INVALID_REQUEST",
            (None, UUID(int=0)): "INVALID_REQUEST",
        }
        assert list(caller.broker.image.topics) == ["u"]

    run(scenario)


def test_a_topic_named_twice_is_not_deleted():
    """Neither by the same name, nor by name and id."""

    async def scenario(caller):
        await caller.call(creating(topic("t")), 7)
        topic_id = caller.broker.image.topic("t").id
        for wanted in (
            [DeleteTopicState(name="t"), DeleteTopicState(name="t")],
            [DeleteTopicState(name="t"), DeleteTopicState(name=None, topic_id=topic_id)],
        ):
            answer = await caller.call(DeleteTopicsRequest(topics=wanted), 6)
            assert {r.error_code for r in answer.responses} == {ErrorCode.INVALID_REQUEST}
        assert list(caller.broker.image.topics) == ["t"]

    run(scenario)


def test_deletion_can_be_switched_off():
    """delete.topic.enable; its own code came with version 3 (KIP-322)."""

    async def scenario(caller):
        await caller.call(creating(topic("t")), 5)
        request = DeleteTopicsRequest(topic_names=["t"])
        for version, code in ((2, "INVALID_REQUEST"), (3, "TOPIC_DELETION_DISABLED")):
            assert codes((await caller.call(request, version)).responses) == {"t": code}
        assert list(caller.broker.image.topics) == ["t"]

    run(scenario, {"delete.topic.enable": "false"})


def test_a_topic_created_anew_is_another_topic():
    """Another id, and none of the old records."""

    async def scenario(caller):
        first = (await caller.call(creating(topic("t")), 7)).topics[0].topic_id
        await caller.call(DeleteTopicsRequest(topic_names=["t"]), 5)
        second = (await caller.call(creating(topic("t")), 7)).topics[0].topic_id
        assert first != second
        assert caller.broker.partitions.get("t", 0).topic_id == second

    run(scenario)


def test_a_request_for_too_many_partitions_creates_nothing():
    """Kafka's limit counts all topics of the request together."""

    async def scenario(caller):
        request = creating(topic("t", 6000), topic("u", 6000))
        answer = await caller.call(request, 5)
        assert codes(answer.topics) == {"t": "POLICY_VIOLATION", "u": "POLICY_VIOLATION"}
        assert dict(caller.broker.image.topics) == {}

    run(scenario)


def test_endless_names_are_answered():
    """In versions whose texts have 16-bit lengths, too."""

    async def scenario(caller):
        name = "n" * 32_000
        (created,) = (await caller.call(creating(topic(name)), 4)).topics
        assert created.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        (grown,) = (await caller.call(growing(name, 3), 1)).results
        assert grown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        (deleted,) = (await caller.call(DeleteTopicsRequest(topic_names=[name]), 5)).responses
        assert deleted.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run(scenario)
