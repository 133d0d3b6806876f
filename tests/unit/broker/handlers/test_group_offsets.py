"""OffsetCommit, OffsetFetch and OffsetDelete, without a socket."""

from typing import Any
from uuid import UUID

from ottla.broker.handlers.group_offsets import OffsetCommit, OffsetDelete
from ottla.broker.handlers.offset_fetch import OffsetFetch
from ottla.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)

from .coordinators_world import TOPIC_IDS, World, code, play

OFFSETS = "__consumer_offsets"


async def commit(world: World, *partitions: int, version: int = 9, **topic: Any) -> list[str]:
    """Commit offset 42 for each partition; the codes."""
    request = OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitRequestTopic(
                **(topic or {"name": "t"}),
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=42, committed_metadata="note"
                    )
                    for index in partitions
                ],
            )
        ],
    )
    answer = await world.call(
        OffsetCommit(world.view, world.groups, world.rewinds), request, version
    )
    return [code(part.error_code) for part in answer.topics[0].partitions]


async def fetch(world: World) -> list[tuple[str, int, int, str]]:
    """What the group has committed, as version 9 tells it."""
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    (group,) = (await world.call(OffsetFetch(world.view, world.groups), request, 9)).groups
    return [
        (topic.name, part.partition_index, part.committed_offset, part.metadata)
        for topic in group.topics
        for part in topic.partitions
    ]


async def delete(world: World, group_id: str, *partitions: int) -> Any:
    parts = [OffsetDeleteRequestPartition(partition_index=index) for index in partitions]
    request = OffsetDeleteRequest(
        group_id=group_id, topics=[OffsetDeleteRequestTopic(name="t", partitions=parts)]
    )
    return await world.call(OffsetDelete(world.view, world.groups, world.rewinds), request, 0)


def test_what_is_committed_is_fetched() -> None:
    """By name; a partition that does not exist is refused beside the others."""

    async def scenario(world: World) -> None:
        assert await commit(world, 0, 5) == ["NONE", "UNKNOWN_TOPIC_OR_PARTITION"]
        assert await fetch(world) == [("t", 0, 42, "note")]
        topic = OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])
        request = OffsetFetchRequest(group_id="g", topics=[topic])
        answer = await world.call(OffsetFetch(world.view, world.groups), request, 7)
        assert [
            (part.partition_index, part.committed_offset) for part in answer.topics[0].partitions
        ] == [(0, 42), (1, -1)]

    play(scenario, OFFSETS, "t")


def test_from_version_10_on_topics_are_named_by_their_ids() -> None:
    """An id that no topic has is UNKNOWN_TOPIC_ID (KIP-848)."""

    async def scenario(world: World) -> None:
        topic_id, unknown = TOPIC_IDS["t"], UUID(int=99)
        assert await commit(world, 0, version=10, topic_id=topic_id) == ["NONE"]
        assert await commit(world, 0, version=10, topic_id=unknown) == ["UNKNOWN_TOPIC_ID"]
        topics = [
            OffsetFetchRequestTopic(topic_id=each, partition_indexes=[0])
            for each in (topic_id, unknown)
        ]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])
        (group,) = (await world.call(OffsetFetch(world.view, world.groups), request, 10)).groups
        assert [
            (topic.topic_id, code(part.error_code), part.committed_offset)
            for topic in group.topics
            for part in topic.partitions
        ] == [(topic_id, "NONE", 42), (unknown, "UNKNOWN_TOPIC_ID", -1)]

    play(scenario, OFFSETS, "t")


def test_offsets_of_a_group_that_is_coordinated_elsewhere_are_refused() -> None:
    """Commit on every partition, fetch on every group, delete above all."""

    async def scenario(world: World) -> None:
        assert await commit(world, 0) == ["NOT_COORDINATOR"]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
        (group,) = (await world.call(OffsetFetch(world.view, world.groups), request, 9)).groups
        assert (group.group_id, code(group.error_code)) == ("g", "NOT_COORDINATOR")
        assert code((await delete(world, "g", 0)).error_code) == "NOT_COORDINATOR"

    play(scenario, "t")


def test_deleted_offsets_are_gone() -> None:
    """A partition that does not exist is told beside the others; so is a group without a name."""

    async def scenario(world: World) -> None:
        await commit(world, 0)
        answer = await delete(world, "g", 0, 5)
        assert answer.error_code == 0
        assert [code(part.error_code) for part in answer.topics[0].partitions] == [
            "NONE",
            "UNKNOWN_TOPIC_OR_PARTITION",
        ]
        assert await fetch(world) == []
        assert code((await delete(world, "", 0)).error_code) == "INVALID_GROUP_ID"
        assert code((await delete(world, "nowhere", 0)).error_code) == "GROUP_ID_NOT_FOUND"

    play(scenario, OFFSETS, "t")
