"""Requests that would begin one group too many, without a socket."""

from typing import Any

import pytest

from ottla.broker.handlers.classic_membership import JoinGroup
from ottla.broker.handlers.consumer_groups import ConsumerGroupHeartbeat, ShareGroupHeartbeat
from ottla.broker.handlers.group_offsets import OffsetCommit
from ottla.wire.messages.classic_membership import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ShareGroupHeartbeatRequest,
)
from ottla.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

from .coordinators_world import World, code, play

INTERNAL = ("__consumer_offsets", "__share_group_state", "t")


async def join(world: World, group_id: str) -> str:
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"t")],
    )
    return code((await world.call(JoinGroup(world.groups), request, 4)).error_code)


async def commit(world: World, group_id: str) -> str:
    part = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=42, committed_metadata=""
    )
    request = OffsetCommitRequest(
        group_id=group_id, topics=[OffsetCommitRequestTopic(name="t", partitions=[part])]
    )
    answer = await world.call(OffsetCommit(world.view, world.groups, world.rewinds), request, 9)
    return code(answer.topics[0].partitions[0].error_code)


async def consumer_beat(world: World, group_id: str) -> str:
    request = ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    handler = ConsumerGroupHeartbeat(world.view, world.groups, world.settings)
    return code((await world.call(handler, request, 1)).error_code)


async def share_beat(world: World, group_id: str) -> str:
    request = ShareGroupHeartbeatRequest(
        group_id=group_id, member_id="m", member_epoch=0, subscribed_topic_names=["t"]
    )
    handler = ShareGroupHeartbeat(world.view, world.groups, world.group_settings, world.group_state)
    return code((await world.call(handler, request, 1)).error_code)


@pytest.mark.parametrize("begin", [join, commit, consumer_beat, share_beat])
def test_a_client_that_names_group_after_group_is_refused(begin: Any, caplog: Any) -> None:
    """By every request that begins one; a group that is there goes on, and the log says why."""

    async def scenario(world: World) -> None:
        for number in range(24):
            assert await commit(world, f"g{number}") == "NONE"
        assert await commit(world, "g") == "NONE"
        assert await begin(world, "another") == "GROUP_MAX_SIZE_REACHED"
        assert await commit(world, "g") == "NONE"
        assert await begin(world, "x" * 1025) == "INVALID_GROUP_ID"

    play(scenario, *INTERNAL, settings={"group.max.count": "100"})
    assert "10.0.0.9 has begun 25 groups of this broker" in caplog.text
    assert "ottla group delete" in caplog.text
