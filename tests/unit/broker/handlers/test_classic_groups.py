"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup and what describes their groups, without a socket."""

from typing import Any

from ottla.base.errors import ErrorCode
from ottla.broker.handlers.classic_membership import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from ottla.broker.handlers.decisions import DescribeRebalances
from ottla.broker.handlers.groups import DeleteGroups, DescribeGroups, ListGroups
from ottla.wire.messages.classic_membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from ottla.wire.messages.decisions import DescribeRebalancesRequest
from ottla.wire.messages.groups import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest

from .coordinators_world import World, code, play

OFFSETS = "__consumer_offsets"


async def join(world: World, group_id: str = "g", protocol: str = "range") -> Any:
    """Version 3 lets a new member in at once."""
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name=protocol, metadata=b"t")],
    )
    return await world.call(JoinGroup(world.groups), request, 3)


async def sync(world: World, member_id: str, generation: int = 1) -> Any:
    request = SyncGroupRequest(
        group_id="g",
        generation_id=generation,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SyncGroupRequestAssignment(member_id=member_id, assignment=b"t-0")],
    )
    return await world.call(SyncGroup(world.groups), request, 5)


async def heartbeat(world: World, member_id: str, generation: int) -> str:
    request = HeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id)
    return code((await world.call(Heartbeat(world.groups), request, 4)).error_code)


async def leave(world: World, *member_ids: str) -> Any:
    request = LeaveGroupRequest(
        group_id="g", members=[MemberIdentity(member_id=each) for each in member_ids]
    )
    return await world.call(LeaveGroup(world.groups), request, 5)


async def delete(world: World, *group_ids: str) -> list[tuple[str, str]]:
    handler = DeleteGroups(world.groups, world.group_state, world.rewinds)
    answer = await world.call(handler, DeleteGroupsRequest(groups_names=list(group_ids)), 2)
    return [(each.group_id, code(each.error_code)) for each in answer.results]


def test_a_member_joins_gets_its_assignment_and_is_known() -> None:
    """The first one is the leader of generation 1."""

    async def scenario(world: World) -> None:
        joined = await join(world)
        assert (joined.error_code, joined.generation_id, joined.protocol_name) == (0, 1, "range")
        assert joined.leader == joined.member_id
        assert [(m.member_id, m.metadata) for m in joined.members] == [(joined.member_id, b"t")]
        synced = await sync(world, joined.member_id)
        assert (synced.error_code, synced.assignment) == (0, b"t-0")
        assert (synced.protocol_type, synced.protocol_name) == ("consumer", "range")
        assert await heartbeat(world, joined.member_id, 1) == "NONE"

    play(scenario, OFFSETS)


def test_requests_without_a_group_name_are_refused() -> None:
    """With INVALID_GROUP_ID, by each of the four."""

    async def scenario(world: World) -> None:
        answers = [
            await join(world, ""),
            await world.call(SyncGroup(world.groups), SyncGroupRequest(), 4),
            await world.call(Heartbeat(world.groups), HeartbeatRequest(), 4),
            await world.call(LeaveGroup(world.groups), LeaveGroupRequest(), 5),
        ]
        assert [code(each.error_code) for each in answers] == ["INVALID_GROUP_ID"] * 4

    play(scenario, OFFSETS)


def test_a_group_that_is_coordinated_elsewhere_is_refused() -> None:
    """Before there is `__consumer_offsets` no broker coordinates a group."""

    async def scenario(world: World) -> None:
        assert code((await join(world)).error_code) == "NOT_COORDINATOR"
        assert code((await sync(world, "m")).error_code) == "NOT_COORDINATOR"
        assert await heartbeat(world, "m", 1) == "NOT_COORDINATOR"
        assert code((await leave(world, "m")).error_code) == "NOT_COORDINATOR"
        assert await delete(world, "g") == [("g", "NOT_COORDINATOR")]

    play(scenario)


def test_a_stranger_and_a_member_of_another_generation_are_refused() -> None:
    """UNKNOWN_MEMBER_ID and ILLEGAL_GENERATION."""

    async def scenario(world: World) -> None:
        member_id = (await join(world)).member_id
        assert code((await sync(world, "stranger")).error_code) == "UNKNOWN_MEMBER_ID"
        assert code((await sync(world, member_id, 7)).error_code) == "ILLEGAL_GENERATION"
        await sync(world, member_id)
        assert await heartbeat(world, "stranger", 1) == "UNKNOWN_MEMBER_ID"
        assert await heartbeat(world, member_id, 7) == "ILLEGAL_GENERATION"

    play(scenario, OFFSETS)


def test_sync_without_a_protocol_is_refused_from_version_5_on() -> None:
    """INCONSISTENT_GROUP_PROTOCOL (KIP-559)."""

    async def scenario(world: World) -> None:
        request = SyncGroupRequest(group_id="g", generation_id=1, member_id="m")
        answer = await world.call(SyncGroup(world.groups), request, 5)
        assert code(answer.error_code) == "INCONSISTENT_GROUP_PROTOCOL"

    play(scenario, OFFSETS)


def test_members_leave_each_with_an_answer_of_its_own() -> None:
    """One that is not there does not keep the others."""

    async def scenario(world: World) -> None:
        member_id = (await join(world)).member_id
        answer = await leave(world, member_id, "stranger")
        assert answer.error_code == 0
        assert [(each.member_id, code(each.error_code)) for each in answer.members] == [
            (member_id, "NONE"),
            ("stranger", "UNKNOWN_MEMBER_ID"),
        ]
        assert await heartbeat(world, member_id, 1) == "UNKNOWN_MEMBER_ID"

    play(scenario, OFFSETS)


def test_groups_are_listed_and_described() -> None:
    """A group that does not exist is Dead, from version 6 on with GROUP_ID_NOT_FOUND (KIP-1043)."""

    async def scenario(world: World) -> None:
        member_id = (await join(world)).member_id
        await sync(world, member_id)
        listed = await world.call(ListGroups(world.groups), ListGroupsRequest(), 5)
        assert [
            (each.group_id, each.protocol_type, each.group_state, each.group_type)
            for each in listed.groups
        ] == [("g", "consumer", "Stable", "classic")]
        request = DescribeGroupsRequest(groups=["g", "nowhere"])
        known, unknown = (await world.call(DescribeGroups(world.groups), request, 6)).groups
        assert (known.group_state, known.protocol_type, known.protocol_data) == (
            "Stable",
            "consumer",
            "range",
        )
        (member,) = known.members
        assert (member.member_id, member.client_id, member.client_host) == (
            member_id,
            "tester",
            "/10.0.0.9",
        )
        assert (member.member_metadata, member.member_assignment) == (b"t", b"t-0")
        assert (code(unknown.error_code), unknown.group_state) == ("GROUP_ID_NOT_FOUND", "Dead")

    play(scenario, OFFSETS)


def test_groups_are_not_listed_while_some_load() -> None:
    """Those that load would lack in the answer."""

    async def scenario(world: World) -> None:
        (shard,) = world.groups.shards()
        shard.coordinator = None
        answer = await world.call(ListGroups(world.groups), ListGroupsRequest(), 5)
        assert (code(answer.error_code), answer.groups) == ("COORDINATOR_LOAD_IN_PROGRESS", [])

    play(scenario, OFFSETS)


def test_a_group_is_deleted_once_it_is_empty() -> None:
    """A name that comes twice is answered once; one that does not exist is told."""

    async def scenario(world: World) -> None:
        member_id = (await join(world)).member_id
        assert await delete(world, "g", "nowhere", "g") == [
            ("g", "NON_EMPTY_GROUP"),
            ("nowhere", "GROUP_ID_NOT_FOUND"),
        ]
        await leave(world, member_id)
        assert await delete(world, "g") == [("g", "NONE")]
        assert (await world.call(ListGroups(world.groups), ListGroupsRequest(), 5)).groups == []

    play(scenario, OFFSETS)


def test_the_rebalances_of_a_group_are_described_with_their_causes() -> None:
    """Of a group without any there are none; the error form has no rebalances."""

    async def scenario(world: World) -> None:
        handler = DescribeRebalances(world.groups)
        member_id = (await join(world)).member_id
        await sync(world, member_id)
        answer = await world.call(handler, DescribeRebalancesRequest(group_id="g"), 0)
        (rebalance,) = answer.rebalances
        assert (rebalance.protocol, rebalance.epoch, rebalance.members) == ("classic", 1, 1)
        (cause,) = rebalance.causes
        assert (cause.kind, cause.member_id, cause.client_id) == ("joined", member_id, "tester")
        answer = await world.call(handler, DescribeRebalancesRequest(group_id="other"), 0)
        assert answer.rebalances == []
        request = DescribeRebalancesRequest(group_id="g")
        failed = handler.on_error(request, ErrorCode.NOT_COORDINATOR, "why", 0)
        assert (code(failed.error_code), failed.error_message) == ("NOT_COORDINATOR", "why")

    play(scenario, OFFSETS)
