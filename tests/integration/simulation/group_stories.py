"""What went wrong elsewhere with groups whose members or coordinators are not what they were."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client import Consumer, ConsumerOptions
from ottla.client.connection.cluster import Cluster
from ottla.client.consumer.options import DEFAULTS, cluster_options
from ottla.testing.simulation.cluster import SimulatedCluster
from ottla.testing.simulation.network.transport import TransportEndpoint
from ottla.wire.messages.classic_membership import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from ottla.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

from . import group_mutants as mutants
from .mutants import Mutate
from .stories import NAME, Story, hold_up, leader_of, until

GROUP = "g"
OFFSETS = "__consumer_offsets"
OPTIONS = ConsumerOptions(
    group_id=GROUP,
    request_timeout_ms=1_000,
    session_timeout_ms=6_000,
    heartbeat_interval_ms=500,
    enable_auto_commit=False,
)


class Member:
    """A member of the group, by its requests."""

    def __init__(self, cluster: Cluster, coordinator: int) -> None:
        self.cluster = cluster
        self.coordinator = coordinator
        self.member_id = ""
        self.generation = -1

    async def join(self) -> None:
        """Join, alone, and take everything; again for the next generation."""
        code = ErrorCode.MEMBER_ID_REQUIRED
        while code is ErrorCode.MEMBER_ID_REQUIRED:
            protocol = JoinGroupRequestProtocol(name="all", metadata=b"%d" % self.generation)
            request = JoinGroupRequest(
                group_id=GROUP,
                session_timeout_ms=30_000,
                rebalance_timeout_ms=30_000,
                member_id=self.member_id,
                protocol_type="consumer",
                protocols=[protocol],
            )
            joined = await self.cluster.ask(self.coordinator, request, JoinGroupResponse)
            code, self.member_id = ErrorCode(joined.error_code), joined.member_id
        assert code is ErrorCode.NONE
        self.generation = joined.generation_id
        share = SyncGroupRequestAssignment(member_id=self.member_id, assignment=b"all")
        synced = await self.cluster.ask(
            self.coordinator,
            SyncGroupRequest(
                group_id=GROUP,
                generation_id=self.generation,
                member_id=self.member_id,
                protocol_type="consumer",
                protocol_name="all",
                assignments=[share],
            ),
            SyncGroupResponse,
        )
        assert synced.error_code == 0

    async def leave(self) -> None:
        request = LeaveGroupRequest(
            group_id=GROUP, members=[MemberIdentity(member_id=self.member_id)]
        )
        await self.cluster.ask(self.coordinator, request, LeaveGroupResponse)

    async def commit(self, offset: int, purpose: str = "") -> ErrorCode:
        """Commit in the generation it knows; what the coordinator says."""
        place = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            topics=[OffsetCommitRequestTopic(name=NAME.topic, partitions=[place])],
        )
        connection = await self.cluster.connection(self.coordinator, purpose)
        answer = await connection.request(request, OffsetCommitResponse, 60.0, at_most=8)
        return ErrorCode(answer.topics[0].partitions[0].error_code)


@asynccontextmanager
async def _client(cluster: SimulatedCluster) -> AsyncIterator[tuple[Cluster, int]]:
    """A client, and the group's coordinator."""
    client = Cluster(cluster.bootstrap, cluster_options({**DEFAULTS, **OPTIONS}))
    try:
        yield client, await client.coordinator(GROUP)
    finally:
        await client.close()


async def _committed(cluster: SimulatedCluster) -> int:
    async with Consumer(cluster.bootstrap, **OPTIONS) as consumer:
        committed = await consumer.committed(NAME)
        return -1 if committed is None else committed


async def _commit_late(
    cluster: SimulatedCluster, member: Member, offset: int
) -> "tuple[asyncio.Future[ErrorCode], TransportEndpoint]":
    """Send a commit that stands still on its way, on a connection of its own."""
    await member.cluster.connection(member.coordinator, "late")
    *others, newest = hold_up(cluster, member.coordinator)
    for endpoint in others:
        endpoint.release()
    late = asyncio.ensure_future(member.commit(offset, "late"))
    await asyncio.sleep(0.1)
    return late, newest


async def s28_a_commit_of_an_earlier_generation(cluster: SimulatedCluster) -> None:
    """It was under way while its member joined again, and committed more."""
    async with _client(cluster) as (client, coordinator):
        member = Member(client, coordinator)
        await member.join()
        late, held = await _commit_late(cluster, member, 3)
        await member.join()
        assert await member.commit(10) is ErrorCode.NONE
        held.release()
        assert await late is ErrorCode.ILLEGAL_GENERATION
    assert await _committed(cluster) == 10


async def s28_a_commit_of_a_member_that_is_out(cluster: SimulatedCluster) -> None:
    """Another has its partition, and is further."""
    async with _client(cluster) as (client, coordinator):
        zombie, heir = Member(client, coordinator), Member(client, coordinator)
        await zombie.join()
        await zombie.leave()
        await heir.join()
        assert await heir.commit(10) is ErrorCode.NONE
        assert await zombie.commit(3) is ErrorCode.UNKNOWN_MEMBER_ID
    assert await _committed(cluster) == 10


async def s28_the_coordinator_dies_in_the_middle_of_a_rebalance(
    cluster: SimulatedCluster,
) -> None:
    """The next one knows the group: nobody reads what was read, and each partition has one."""
    await cluster.create_topic("u", partitions=2)
    async with (
        Consumer(cluster.bootstrap, **OPTIONS) as one,
        Consumer(cluster.bootstrap, **OPTIONS) as two,
    ):
        one.subscribe("u")
        while len(one.assignment()) < 2:
            await one.poll(0.1)
        await one.commit(dict.fromkeys(one.assignment(), 7))
        two.subscribe("u")
        joining = asyncio.ensure_future(two.poll(0.1))
        await asyncio.sleep(0.05)
        coordinator = leader_of(cluster, OFFSETS)
        await cluster.crash(coordinator)
        await asyncio.gather(joining, return_exceptions=True)
        while not (len(one.assignment()) == len(two.assignment()) == 1):
            for consumer in (one, two):
                try:
                    await consumer.poll(0.1)
                except OttlaError:
                    await asyncio.sleep(0.1)
        assert one.assignment().isdisjoint(two.assignment())
        for partition in (*one.assignment(), *two.assignment()):
            assert await one.committed(partition) == 7
        await cluster.start(coordinator)


async def s28_a_commit_that_only_its_coordinator_had(cluster: SimulatedCluster) -> None:
    """It dies with it; so nobody was told that it counts."""
    async with _client(cluster) as (client, coordinator):
        member = Member(client, coordinator)
        await member.join()
        assert await member.commit(5) is ErrorCode.NONE
        for other in cluster._world.machines:
            if other != coordinator:
                cluster.partition(coordinator, other)
        told = await member.commit(7)
        await cluster.crash(coordinator)
        await until(lambda: leader_of(cluster, OFFSETS) not in (coordinator, -1))
        cluster.heal()
        found = await _committed(cluster)
        await cluster.start(coordinator)
    assert found == 5
    assert told is not ErrorCode.NONE


SCRIPTS: dict[Story, list[Mutate]] = {
    s28_a_commit_of_an_earlier_generation: [mutants.generations_do_not_matter],
    s28_a_commit_of_a_member_that_is_out: [mutants.strangers_may_commit],
    s28_the_coordinator_dies_in_the_middle_of_a_rebalance: [mutants.coordinators_begin_anew],
    s28_a_commit_that_only_its_coordinator_had: [mutants.answers_do_not_wait],
}
