"""Heartbeats, descriptions and offsets of share groups, without a socket."""

from typing import Any

from ottla.broker.handlers.consumer_groups import ShareGroupDescribe, ShareGroupHeartbeat
from ottla.broker.handlers.groups import DeleteGroups
from ottla.broker.handlers.share_group_offsets import (
    AlterShareGroupOffsets,
    DeleteShareGroupOffsets,
    DescribeShareGroupOffsets,
)
from ottla.wire.messages.consumer_groups import (
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from ottla.wire.messages.groups import DeleteGroupsRequest
from ottla.wire.messages.share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)

from .coordinators_world import TOPIC_IDS, World, code, play

TOPICS = ("__consumer_offsets", "__share_group_state", "t")
T = TOPIC_IDS["t"]


async def beat(world: World, epoch: int, member_id: str = "m") -> Any:
    request = ShareGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        member_epoch=epoch,
        subscribed_topic_names=["t"] if epoch == 0 else None,
    )
    handler = ShareGroupHeartbeat(world.view, world.groups, world.group_settings, world.group_state)
    return await world.call(handler, request, 1)


async def alter(world: World, topic: str, offset: int) -> Any:
    part = AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=offset)
    request = AlterShareGroupOffsetsRequest(
        group_id="g",
        topics=[AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=[part])],
    )
    handler = AlterShareGroupOffsets(world.view, world.groups, world.group_state)
    return await world.call(handler, request, 0)


async def delete_offsets(world: World, *topics: str, group_id: str = "g") -> Any:
    request = DeleteShareGroupOffsetsRequest(
        group_id=group_id,
        topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics],
    )
    handler = DeleteShareGroupOffsets(world.view, world.groups, world.group_state)
    return await world.call(handler, request, 0)


async def describe_offsets(world: World, group_id: str = "g") -> Any:
    """The group, with all topics that it has state of."""
    group = DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)
    handler = DescribeShareGroupOffsets(
        world.view, world.groups, world.persister, world.end_offsets
    )
    request = DescribeShareGroupOffsetsRequest(groups=[group])
    (found,) = (await world.call(handler, request, 1)).groups
    return found


def test_a_member_gets_its_partitions_with_its_first_heartbeat() -> None:
    """Their state is initialized for it; the pace is the group's own."""

    async def scenario(world: World) -> None:
        world.configure_group("g", share_heartbeat_interval_ms="1234")
        answer = await beat(world, 0)
        assert (answer.error_code, answer.member_id) == (0, "m")
        assert answer.heartbeat_interval_ms == 1234
        (assigned,) = answer.assignment.topic_partitions
        assert (assigned.topic_id, assigned.partitions) == (T, [0])
        (shard,) = world.share_states.shards()
        assert [(key.group_id, key.topic_id) for key in shard.loaded().states] == [("g", T)]

    play(scenario, *TOPICS)


def test_a_stranger_and_a_group_elsewhere_are_refused() -> None:
    """And everything while share.version is 0."""

    async def scenario(world: World) -> None:
        assert code((await beat(world, 0)).error_code) == "NOT_COORDINATOR"
        await world.create("__consumer_offsets")
        await beat(world, 0)
        assert code((await beat(world, 1, "stranger")).error_code) == "UNKNOWN_MEMBER_ID"
        world.view.replace(world.view.image.with_features({"share.version": 0}, 2))
        assert code((await beat(world, 1)).error_code) == "UNSUPPORTED_VERSION"

    play(scenario, "__share_group_state", "t")


def test_share_groups_are_described() -> None:
    """One that does not exist is GROUP_ID_NOT_FOUND."""

    async def scenario(world: World) -> None:
        await beat(world, 0)
        request = ShareGroupDescribeRequest(group_ids=["g", "nowhere"])
        handler = ShareGroupDescribe(world.view, world.groups)
        known, unknown = (await world.call(handler, request, 1)).groups
        assert (known.group_id, known.group_state, known.assignor_name) == ("g", "Stable", "simple")
        (member,) = known.members
        assert (member.member_id, member.client_id, member.subscribed_topic_names) == (
            "m",
            "tester",
            ["t"],
        )
        assert (unknown.group_id, code(unknown.error_code)) == ("nowhere", "GROUP_ID_NOT_FOUND")

    play(scenario, *TOPICS)


def test_the_offsets_of_an_empty_group_are_altered_and_described_with_the_lag() -> None:
    """A topic that does not exist is told beside the others; so is a negative offset."""

    async def scenario(world: World) -> None:
        world.write("t", b"one", b"two", b"three")
        await beat(world, 0)
        await beat(world, -1)
        (topic,) = (await alter(world, "t", 1)).responses
        assert (topic.topic_id, code(topic.partitions[0].error_code)) == (T, "NONE")
        (topic,) = (await describe_offsets(world)).topics
        (part,) = topic.partitions
        assert (topic.topic_name, part.start_offset, part.lag, part.error_code) == ("t", 1, 2, 0)
        (topic,) = (await alter(world, "missing", 1)).responses
        assert code(topic.partitions[0].error_code) == "UNKNOWN_TOPIC_OR_PARTITION"
        (topic,) = (await alter(world, "t", -1)).responses
        assert code(topic.partitions[0].error_code) == "INVALID_REQUEST"

    play(scenario, *TOPICS)


def test_the_offsets_of_a_group_with_members_are_not_changed() -> None:
    """NON_EMPTY_GROUP above all topics."""

    async def scenario(world: World) -> None:
        await beat(world, 0)
        for answer in (await alter(world, "t", 1), await delete_offsets(world, "t")):
            assert (code(answer.error_code), answer.error_message) == (
                "NON_EMPTY_GROUP",
                "The group g is not empty: its members must leave first.",
            )
            assert answer.responses == []

    play(scenario, *TOPICS)


def test_deleted_offsets_are_gone() -> None:
    """A topic without state is an error, and a group that does not exist; it has no offsets."""

    async def scenario(world: World) -> None:
        await beat(world, 0)
        await beat(world, -1)
        known, unknown = (await delete_offsets(world, "t", "u")).responses
        assert (known.topic_name, known.topic_id, code(known.error_code)) == ("t", T, "NONE")
        assert (unknown.topic_name, code(unknown.error_code)) == ("u", "UNKNOWN_TOPIC_OR_PARTITION")
        assert (await describe_offsets(world)).topics == []
        answer = await delete_offsets(world, "t", group_id="nowhere")
        assert (code(answer.error_code), answer.error_message) == (
            "GROUP_ID_NOT_FOUND",
            "Group nowhere not found.",
        )
        found = await describe_offsets(world, "nowhere")
        assert (code(found.error_code), found.topics) == ("NONE", [])

    play(scenario, *TOPICS)


def test_with_a_share_group_the_state_of_its_partitions_is_deleted() -> None:
    """The group itself after that."""

    async def scenario(world: World) -> None:
        await beat(world, 0)
        handler = DeleteGroups(world.groups, world.group_state, world.rewinds)
        request = DeleteGroupsRequest(groups_names=["g"])
        (result,) = (await world.call(handler, request, 2)).results
        assert code(result.error_code) == "NON_EMPTY_GROUP"
        await beat(world, -1)
        (result,) = (await world.call(handler, request, 2)).results
        assert code(result.error_code) == "NONE"
        (shard,) = world.share_states.shards()
        assert shard.loaded().states == {}
        (result,) = (await world.call(handler, request, 2)).results
        assert code(result.error_code) == "GROUP_ID_NOT_FOUND"

    play(scenario, *TOPICS)
