"""ConsumerGroupHeartbeat and ConsumerGroupDescribe, without a socket."""

from typing import Any

from ottla.broker.handlers.consumer_groups import ConsumerGroupDescribe, ConsumerGroupHeartbeat
from ottla.wire.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)

from .coordinators_world import TOPIC_IDS, World, code, play

OFFSETS = "__consumer_offsets"


async def beat(world: World, epoch: int, member_id: str = "m") -> Any:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=10_000 if epoch == 0 else -1,
        subscribed_topic_names=["t"] if epoch == 0 else None,
        topic_partitions=[] if epoch == 0 else None,
    )
    handler = ConsumerGroupHeartbeat(world.view, world.groups, world.settings)
    return await world.call(handler, request, 1)


def test_a_member_gets_its_partitions_with_the_pace_of_its_group() -> None:
    """The group's own setting goes before the broker's."""

    async def scenario(world: World) -> None:
        world.configure_group("g", consumer_heartbeat_interval_ms="1234")
        answer = await beat(world, 0)
        assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "m", 2)
        assert answer.heartbeat_interval_ms == 1234
        (assigned,) = answer.assignment.topic_partitions
        assert (assigned.topic_id, assigned.partitions) == (TOPIC_IDS["t"], [0])

    play(scenario, OFFSETS, "t")


def test_a_group_is_described() -> None:
    """One that does not exist is GROUP_ID_NOT_FOUND."""

    async def scenario(world: World) -> None:
        await beat(world, 0)
        request = ConsumerGroupDescribeRequest(group_ids=["g", "nowhere"])
        handler = ConsumerGroupDescribe(world.view, world.groups)
        known, unknown = (await world.call(handler, request, 1)).groups
        assert (known.group_id, known.group_state, known.group_epoch) == ("g", "Stable", 2)
        assert known.assignor_name == "uniform"
        (member,) = known.members
        assert (member.member_id, member.client_id, member.client_host) == (
            "m",
            "tester",
            "/10.0.0.9",
        )
        (assigned,) = member.assignment.topic_partitions
        assert (assigned.topic_name, assigned.partitions) == ("t", [0])
        assert (unknown.group_id, code(unknown.error_code)) == ("nowhere", "GROUP_ID_NOT_FOUND")

    play(scenario, OFFSETS, "t")


def test_a_stranger_and_a_group_elsewhere_are_refused() -> None:
    """UNKNOWN_MEMBER_ID, and NOT_COORDINATOR where there is no `__consumer_offsets`."""

    async def scenario(world: World) -> None:
        assert code((await beat(world, 0)).error_code) == "NOT_COORDINATOR"
        await world.create(OFFSETS)
        await beat(world, 0)
        assert code((await beat(world, 1, "stranger")).error_code) == "UNKNOWN_MEMBER_ID"

    play(scenario, "t")


def test_the_protocol_can_be_switched_off() -> None:
    """At level 0 of group.version."""

    async def scenario(world: World) -> None:
        world.view.replace(world.view.image.with_features({"group.version": 0}, 2))
        assert code((await beat(world, 0)).error_code) == "UNSUPPORTED_VERSION"
        request = ConsumerGroupDescribeRequest(group_ids=["g"])
        handler = ConsumerGroupDescribe(world.view, world.groups)
        (group,) = (await world.call(handler, request, 1)).groups
        assert code(group.error_code) == "UNSUPPORTED_VERSION"

    play(scenario, OFFSETS, "t")
