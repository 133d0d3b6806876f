"""Every version of every group API that is advertised is served."""

import time
from uuid import UUID

import pytest

from ottla.base.errors import ErrorCode
from ottla.wire.messages.classic_membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from ottla.wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from ottla.wire.messages.groups import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from tests.integration.groups.conftest import GroupsBroker
from tests.integration.groups.wire_client import WireClient


def join(
    wire: WireClient, group: str, version: int = 9, member_id: str = "", instance: str | None = None
) -> JoinGroupResponse:
    """Join, the round trip for an id included."""
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000 if version >= 1 else -1,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"meta")],
    )
    answer: JoinGroupResponse = wire.ask(request, version)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        assert version >= 4
        request.member_id = answer.member_id
        answer = wire.ask(request, version)
    assert answer.error_code == 0, answer
    return answer


def stable(wire: WireClient, group: str) -> str:
    """Make a group of one member, which is generation 1, and return its member id."""
    member_id = join(wire, group).member_id
    share = SyncGroupRequestAssignment(member_id=member_id, assignment=b"share")
    request = SyncGroupRequest(
        group_id=group,
        generation_id=1,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[share],
    )
    assert wire.ask(request, 5).assignment == b"share"
    return member_id


@pytest.mark.parametrize("version", range(10))
def test_join(wire: WireClient, group: str, version: int) -> None:
    """JoinGroup 0-9 lead to the same generation."""
    answer = join(wire, group, version)
    assert (answer.generation_id, answer.leader, answer.protocol_name) == (
        1,
        answer.member_id,
        "range",
    )
    assert [(each.member_id, each.metadata) for each in answer.members] == [
        (answer.member_id, b"meta")
    ]
    assert answer.protocol_type == ("consumer" if version >= 7 else None)


@pytest.mark.parametrize("version", range(10))
def test_refused_join(wire: WireClient, group: str, version: int) -> None:
    """A refusal can be told in every version."""
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=1,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range")],
    )
    assert wire.ask(request, version).error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    request.group_id = ""
    assert wire.ask(request, version).error_code == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("version", range(6))
def test_sync(wire: WireClient, group: str, version: int) -> None:
    """SyncGroup 0-5 tell the share; from 5 on the protocol must be named (KIP-559)."""
    member_id = stable(wire, group)
    request = SyncGroupRequest(group_id=group, generation_id=1, member_id=member_id)
    if version >= 5:
        refused = wire.ask(request, version)
        assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        request.protocol_type = "consumer"
        request.protocol_name = "range"
    answer = wire.ask(request, version)
    assert (answer.error_code, answer.assignment) == (0, b"share")


@pytest.mark.parametrize("version", range(5))
def test_heartbeat(wire: WireClient, group: str, version: int) -> None:
    """Heartbeat 0-4."""
    member_id = stable(wire, group)
    request = HeartbeatRequest(group_id=group, generation_id=1, member_id=member_id)
    assert wire.ask(request, version).error_code == ErrorCode.NONE
    request.generation_id = 2
    assert wire.ask(request, version).error_code == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("version", range(6))
def test_leave(wire: WireClient, group: str, version: int) -> None:
    """LeaveGroup 0-5: one member before version 3, many from there on."""
    member_id = stable(wire, group)
    if version < 3:
        request = LeaveGroupRequest(group_id=group, member_id=member_id)
        assert wire.ask(request, version).error_code == ErrorCode.NONE
        assert wire.ask(request, version).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        return
    both = [MemberIdentity(member_id=member_id), MemberIdentity(member_id="stranger")]
    answer = wire.ask(LeaveGroupRequest(group_id=group, members=both), version)
    assert answer.error_code == ErrorCode.NONE
    assert [(each.member_id, each.error_code) for each in answer.members] == [
        (member_id, ErrorCode.NONE),
        ("stranger", ErrorCode.UNKNOWN_MEMBER_ID),
    ]


def _commit(group: str, *partitions: OffsetCommitRequestPartition) -> OffsetCommitRequest:
    topic = OffsetCommitRequestTopic(name="t", partitions=list(partitions))
    return OffsetCommitRequest(group_id=group, topics=[topic])


@pytest.mark.parametrize("version", range(2, 10))
def test_commit(wire: WireClient, group: str, version: int) -> None:
    """OffsetCommit 2-9: partitions that exist are stored, others named."""
    request = _commit(
        group,
        OffsetCommitRequestPartition(
            partition_index=0,
            committed_offset=version,
            committed_leader_epoch=1 if version >= 6 else -1,
            committed_metadata="m",
        ),
        OffsetCommitRequestPartition(partition_index=3, committed_offset=1),
    )
    (topic,) = wire.ask(request, version).topics
    assert {each.partition_index: each.error_code for each in topic.partitions} == {
        0: ErrorCode.NONE,
        3: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    fetch = OffsetFetchRequest(
        group_id=group, topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
    )
    (told,) = wire.ask(fetch, 5).topics[0].partitions
    assert (told.committed_offset, told.committed_leader_epoch, told.metadata) == (
        version,
        1 if version >= 6 else -1,
        "m",
    )


@pytest.mark.parametrize("version", range(1, 8))
def test_fetch_of_one_group(wire: WireClient, group: str, version: int) -> None:
    """OffsetFetch 1-7; from version 2 on null topics mean all."""
    partition = OffsetCommitRequestPartition(partition_index=1, committed_offset=7)
    wire.ask(_commit(group, partition), 2)
    request = OffsetFetchRequest(
        group_id=group, topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[1, 2])]
    )
    answer = wire.ask(request, version)
    assert [
        (each.partition_index, each.committed_offset) for each in answer.topics[0].partitions
    ] == [
        (1, 7),
        (2, -1),
    ]
    if version >= 2:
        request.topics = None
        (topic,) = wire.ask(request, version).topics
        assert (topic.name, [each.partition_index for each in topic.partitions]) == ("t", [1])


@pytest.mark.parametrize("version", [8, 9])
def test_fetch_of_many_groups(wire: WireClient, group: str, version: int) -> None:
    """OffsetFetch 8 and 9 ask for many groups at once, whichever shard has them (KIP-709)."""
    names = [f"{group}-{number}" for number in range(8)]
    for number, name in enumerate(names):
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=number)
        wire.ask(_commit(name, partition), 2)
    wanted = [OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
    groups = [OffsetFetchRequestGroup(group_id=name, topics=wanted) for name in names]
    groups.append(OffsetFetchRequestGroup(group_id=names[3], topics=None))
    answer = wire.ask(OffsetFetchRequest(groups=groups), version)
    told = sorted(
        (each.group_id, each.topics[0].partitions[0].committed_offset) for each in answer.groups
    )
    # One that is named twice is answered once.
    assert told == list(zip(names, range(8), strict=True))


def test_topic_ids(groups_broker: GroupsBroker, wire: WireClient, group: str) -> None:
    """OffsetCommit and OffsetFetch 10 name topics by id (KIP-848)."""
    groups_broker.create_topic("by-id")
    topic_id = wire.topic_id("by-id")
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    known = OffsetCommitRequestTopic(topic_id=topic_id, partitions=[partition])
    unknown = OffsetCommitRequestTopic(topic_id=type(topic_id)(int=7), partitions=[partition])
    answer = wire.ask(OffsetCommitRequest(group_id=group, topics=[known, unknown]), 10)
    assert {each.topic_id: each.partitions[0].error_code for each in answer.topics} == {
        topic_id: ErrorCode.NONE,
        unknown.topic_id: ErrorCode.UNKNOWN_TOPIC_ID,
    }
    wanted = [
        OffsetFetchRequestTopic(topic_id=topic_id, partition_indexes=[0]),
        OffsetFetchRequestTopic(topic_id=unknown.topic_id, partition_indexes=[0]),
    ]
    (some,), (everything,) = [
        wire.ask(
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)]), 10
        ).groups
        for topics in (wanted, None)
    ]
    told = {each.topic_id: each.partitions[0] for each in some.topics}
    assert {key: (each.committed_offset, each.error_code) for key, each in told.items()} == {
        topic_id: (5, ErrorCode.NONE),
        unknown.topic_id: (-1, ErrorCode.UNKNOWN_TOPIC_ID),
    }
    assert [each.topic_id for each in everything.topics] == [topic_id]


@pytest.mark.parametrize("version", range(7))
def test_describe(wire: WireClient, group: str, version: int) -> None:
    """DescribeGroups 0-6; an unknown group is dead before 6 and an error in it (KIP-1043)."""
    member_id = stable(wire, group)
    request = DescribeGroupsRequest(groups=[group, f"{group}-not"])
    groups = {each.group_id: each for each in wire.ask(request, version).groups}
    known, unknown = groups[group], groups[f"{group}-not"]
    (member,) = known.members
    assert (known.group_state, known.protocol_type, known.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    assert (member.member_id, member.client_id, member.client_host) == (
        member_id,
        "wire",
        "/127.0.0.1",
    )
    assert (member.member_metadata, member.member_assignment) == (b"meta", b"share")
    assert unknown.group_state == "Dead"
    assert unknown.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0)


@pytest.mark.parametrize("version", range(6))
def test_list(wire: WireClient, group: str, version: int) -> None:
    """ListGroups 0-5: states are told from 4 on, types from 5 on."""
    stable(wire, group)
    request = ListGroupsRequest()
    if version >= 4:
        request.states_filter = ["Stable"]
    if version >= 5:
        request.types_filter = ["Classic"]
    groups = {each.group_id: each for each in wire.ask(request, version).groups}
    assert groups[group].protocol_type == "consumer"
    assert groups[group].group_state == ("Stable" if version >= 4 else "")
    assert groups[group].group_type == ("classic" if version >= 5 else "")
    if version >= 4:
        request.states_filter = ["Empty"]
        assert group not in {each.group_id for each in wire.ask(request, version).groups}


@pytest.mark.parametrize("version", range(3))
def test_delete(wire: WireClient, group: str, version: int) -> None:
    """DeleteGroups 0-2: only groups without members."""
    member_id = stable(wire, group)
    simple = f"{group}-simple"
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    wire.ask(_commit(simple, partition), 2)
    request = DeleteGroupsRequest(groups_names=[group, simple, f"{group}-not", ""])
    results = wire.ask(request, version).results
    assert {each.group_id: each.error_code for each in results} == {
        group: ErrorCode.NON_EMPTY_GROUP,
        simple: ErrorCode.NONE,
        f"{group}-not": ErrorCode.GROUP_ID_NOT_FOUND,
        "": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    wire.ask(LeaveGroupRequest(group_id=group, member_id=member_id), 0)
    request.groups_names = [group]
    assert wire.ask(request, version).results[0].error_code == ErrorCode.NONE


def test_a_pattern_takes_in_internal_topics(wire: WireClient, group: str) -> None:
    """ConsumerGroupHeartbeat 1: the broker matches a pattern with all topics, `__…` among them."""
    beat = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=f"{group}-member",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[],
        subscribed_topic_regex="__consumer_off.*",
        topic_partitions=[],
    )
    deadline_s = time.monotonic() + 120
    assigned: set[UUID] = set()
    while not assigned and time.monotonic() < deadline_s:
        answer = wire.ask(beat, 1)
        assert answer.error_code == ErrorCode.NONE
        beat = ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=f"{group}-member", member_epoch=answer.member_epoch
        )
        given = answer.assignment.topic_partitions if answer.assignment else []
        assigned = {each.topic_id for each in given}
        time.sleep(0.05)
    assert assigned == {wire.topic_id("__consumer_offsets")}
