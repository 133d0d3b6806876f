"""CreateTopics, CreatePartitions and DeleteTopics: each topic of a request stands for itself."""

from uuid import UUID

import pytest

from ottla.base.errors import ErrorCode
from ottla.broker.handlers.create_topics import CreatePartitions, CreateTopics
from ottla.broker.handlers.deletions import DeleteTopics
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

from .cluster_world import call, play

NO_ID = UUID(int=0)


def topic(name, partitions=1, factor=1, assigned=(), **configs):
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in assigned
        ],
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


async def create(world, *topics, version=7, **fields):
    handler = CreateTopics(world.settings, world.topics)
    request = CreateTopicsRequest(topics=list(topics), **fields)
    return (await call(handler, request, version)).topics


def codes(results):
    return [(result.name, ErrorCode(result.error_code).name) for result in results]


def test_a_topic_is_created_and_its_logs_are_open_when_the_client_hears_of_it():
    """With its id, its counts and the settings in effect: 1 is the topic's own, 5 a default."""

    async def scenario(world):
        (result,) = await create(world, topic("t", 2, retention_ms="5"))
        assert (result.error_code, result.error_message) == (0, None)
        assert result.topic_id == world.view.image.topic("t").id
        assert (result.num_partitions, result.replication_factor) == (2, 1)
        settings = {c.name: (c.value, c.config_source) for c in result.configs}
        assert settings["retention.ms"] == ("5", 1)
        assert settings["segment.bytes"] == ("1073741824", 5)
        assert [world.partitions.get("t", index).log_end_offset for index in (0, 1)] == [0, 0]

    play(scenario)


def test_a_topic_that_is_refused_does_not_hinder_the_others():
    """Answers are in the order of the request; a name given twice is created neither time."""

    async def scenario(world):
        results = await create(
            world,
            topic("good"),
            topic("two", factor=2),
            topic("bad name"),
            topic("twice"),
            topic("twice"),
            topic("odd", no_such="1"),
            topic("none", retention_ms=None),
            topic("placed", -1, -1, assigned=[(0, [1]), (0, [1])]),
            topic("__cluster_metadata"),
            topic("fine", -1, -1, assigned=[(0, [1])]),
        )
        assert codes(results) == [
            ("good", "NONE"),
            ("two", "INVALID_REPLICATION_FACTOR"),
            ("bad name", "INVALID_TOPIC_EXCEPTION"),
            ("twice", "INVALID_REQUEST"),
            ("odd", "INVALID_CONFIG"),
            ("none", "INVALID_CONFIG"),
            ("placed", "INVALID_REPLICA_ASSIGNMENT"),
            ("__cluster_metadata", "INVALID_REQUEST"),
            ("fine", "NONE"),
        ]
        assert sorted(world.view.image.topics) == ["fine", "good"]
        assert codes(await create(world, topic("good"))) == [("good", "TOPIC_ALREADY_EXISTS")]

    play(scenario)


def test_a_trial_run_creates_nothing():
    """It says what would be."""

    async def scenario(world):
        (result,) = await create(world, topic("t", 2), validate_only=True)
        assert (result.error_code, result.num_partitions) == (0, 2)
        assert world.view.image.topic("t") is None

    play(scenario)


async def grow(world, *wanted, version=3, **fields):
    topics = []
    for name, count, *assigned in wanted:
        placed = [CreatePartitionsAssignment(broker_ids=brokers) for brokers in assigned]
        topics.append(CreatePartitionsTopic(name=name, count=count, assignments=placed or None))
    request = CreatePartitionsRequest(topics=topics, timeout_ms=30_000, **fields)
    handler = CreatePartitions(world.view, world.topics)
    return (await call(handler, request, version)).results


def test_partitions_are_added_where_they_can_be():
    """Fewer than before, a broker that is unknown, a topic that is not there or is named twice."""

    async def scenario(world):
        for name in ("t", "placed", "twice", "few", "far"):
            await world.make(name)
        wanted = [
            ("t", 3),
            ("placed", 2, [1]),
            ("twice", 2),
            ("twice", 3),
            ("few", 1),
            ("far", 2, [9]),
            ("none", 2),
        ]
        assert codes(await grow(world, *wanted)) == [
            ("t", "NONE"),
            ("placed", "NONE"),
            ("twice", "INVALID_REQUEST"),
            ("few", "INVALID_PARTITIONS"),
            ("far", "INVALID_REPLICA_ASSIGNMENT"),
            ("none", "UNKNOWN_TOPIC_OR_PARTITION"),
        ]
        image = world.view.image
        counts = {name: len(each.partitions) for name, each in image.topics.items()}
        assert counts == {"t": 3, "placed": 2, "twice": 1, "few": 1, "far": 1}
        assert world.partitions.get("t", 2).log_end_offset == 0

    play(scenario)


def test_a_trial_run_adds_no_partition():
    """The answer is the same."""

    async def scenario(world):
        await world.make("t")
        assert codes(await grow(world, ("t", 3), validate_only=True)) == [("t", "NONE")]
        assert len(world.view.image.topic("t").partitions) == 1

    play(scenario)


async def delete(world, *states, version=6):
    handler = DeleteTopics(world.view, world.settings, world.topics)
    named = (
        {"topics": list(states)}
        if version >= 6
        else {"topic_names": [state.name for state in states]}
    )
    request = DeleteTopicsRequest(timeout_ms=30_000, **named)
    answer = (await call(handler, request, version)).responses
    return [(r.name, r.topic_id, ErrorCode(r.error_code).name) for r in answer]


def by_name(name):
    return DeleteTopicState(name=name)


def by_id(topic_id):
    return DeleteTopicState(name=None, topic_id=topic_id)


def test_topics_are_deleted_by_name_and_by_id():
    """Their logs are gone, and their names are free, when the client hears of it."""

    async def scenario(world):
        first, second = await world.make("t"), await world.make("u")
        assert await delete(world, by_name("t"), by_id(second)) == [
            ("t", first, "NONE"),
            ("u", second, "NONE"),
        ]
        assert world.view.image.topics == {}
        assert len(world.partitions) == 0
        await world.make("t")
        assert await delete(world, by_name("t"), version=5) == [("t", NO_ID, "NONE")]

    play(scenario)


def test_a_topic_that_is_not_named_clearly_is_not_deleted():
    """Unknown, named twice, by name and id at once, or not at all."""

    async def scenario(world):
        kept = await world.make("t")
        strange = UUID(int=9)
        refused = [
            ([by_name("none")], [("none", NO_ID, "UNKNOWN_TOPIC_OR_PARTITION")]),
            ([by_id(strange)], [(None, strange, "UNKNOWN_TOPIC_ID")]),
            ([by_name("t"), by_name("t")], [("t", NO_ID, "INVALID_REQUEST")]),
            ([by_name("t"), by_id(kept)], [("t", kept, "INVALID_REQUEST")]),
            (
                [DeleteTopicState(name="t", topic_id=kept)],
                [("t", kept, "INVALID_REQUEST")],
            ),
            ([by_id(NO_ID)], [(None, NO_ID, "INVALID_REQUEST")]),
        ]
        for states, answer in refused:
            assert await delete(world, *states) == answer
        assert list(world.view.image.topics) == ["t"]

    play(scenario)


@pytest.mark.parametrize(
    ("version", "code"), [(2, "INVALID_REQUEST"), (3, "TOPIC_DELETION_DISABLED")]
)
def test_nothing_is_deleted_where_deletion_is_disabled(version, code):
    """The error came with version 3."""

    async def scenario(world):
        await world.make("t")
        assert await delete(world, by_name("t"), version=version) == [("t", NO_ID, code)]
        assert list(world.view.image.topics) == ["t"]

    play(scenario, {"delete.topic.enable": "false"})


def test_an_error_of_the_whole_request_is_on_every_topic():
    """These answers have no other place for it."""
    code = ErrorCode.POLICY_VIOLATION
    for handler, request, results in (
        (CreateTopics, CreateTopicsRequest(topics=[topic("t"), topic("u")]), "topics"),
        (
            CreatePartitions,
            CreatePartitionsRequest(
                topics=[CreatePartitionsTopic(name=name, count=2) for name in ("t", "u")]
            ),
            "results",
        ),
        (DeleteTopics, DeleteTopicsRequest(topics=[by_name("t"), by_name("u")]), "responses"),
    ):
        answer = getattr(handler.on_error(request, code, "why", 6), results)
        assert [(each.name, each.error_code, each.error_message) for each in answer] == [
            ("t", code, "why"),
            ("u", code, "why"),
        ]
