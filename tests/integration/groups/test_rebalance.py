"""Rebalances as members see them: who waits, and what wakes it."""

import time

import ottla.testing
from ottla.base.errors import ErrorCode
from ottla.wire.messages.classic_membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from ottla.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from tests.integration.groups.conftest import GroupsBroker
from tests.integration.groups.test_versions import join, stable
from tests.integration.groups.wire_client import WireClient


def _join_request(group: str, member_id: str, session_ms: int = 60_000) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"meta")],
    )


def committed(wire: WireClient, group: str, partition: int = 0) -> int:
    topic = OffsetFetchRequestTopic(name="t", partition_indexes=[partition])
    answer = wire.ask(OffsetFetchRequest(group_id=group, topics=[topic]), 5)
    offset: int = answer.topics[0].partitions[0].committed_offset
    return offset


def commit(wire: WireClient, group: str, member_id: str, generation: int, offset: int) -> int:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])],
    )
    code: int = wire.ask(request, 8).topics[0].partitions[0].error_code
    return code


def test_join_and_sync_wait_for_the_others(
    groups_broker: GroupsBroker, wire: WireClient, group: str
) -> None:
    """The answers are held back until everyone is there, and until the leader has shared out."""
    first = stable(wire, group)
    with WireClient(groups_broker.port) as other:
        request = _join_request(group, "")
        second = request.member_id = other.ask(request, 9).member_id
        other.send(request, 9)
        assert other.is_silent(0.1)
        beat = HeartbeatRequest(group_id=group, generation_id=1, member_id=first)
        assert wire.ask(beat, 4).error_code == ErrorCode.REBALANCE_IN_PROGRESS
        again = join(wire, group, member_id=first)
        assert {each.member_id for each in again.members} == {first, second}
        assert other.receive(request, 9).generation_id == 2

        waits = SyncGroupRequest(group_id=group, generation_id=2, member_id=second)
        other.send(waits, 4)
        assert other.is_silent(0.1)
        shares = [
            SyncGroupRequestAssignment(member_id=first, assignment=b"one"),
            SyncGroupRequestAssignment(member_id=second, assignment=b"two"),
        ]
        leads = SyncGroupRequest(
            group_id=group, generation_id=2, member_id=first, assignments=shares
        )
        assert wire.ask(leads, 4).assignment == b"one"
        assert other.receive(waits, 4).assignment == b"two"


def test_requests_behind_a_waiting_join_are_answered_after_it(
    groups_broker: GroupsBroker, wire: WireClient, group: str
) -> None:
    """Answers keep the order of requests on a connection."""
    first = stable(wire, group)
    with WireClient(groups_broker.port) as other:
        request = _join_request(group, "")
        request.member_id = other.ask(request, 9).member_id
        other.send(request, 9)
        beat = HeartbeatRequest(group_id=group, generation_id=9, member_id=request.member_id)
        other.send(beat, 4)
        assert other.is_silent(0.1)
        join(wire, group, member_id=first)
        assert other.receive(request, 9).generation_id == 2
        assert other.receive(beat, 4).error_code == ErrorCode.ILLEGAL_GENERATION


def test_silent_member_is_out_when_its_session_ends(group: str) -> None:
    """By the broker's own timer, with no request to wake it."""
    with ottla.testing.Broker(settings={"group.min.session.timeout.ms": "100"}) as broker:
        broker.create_topic("t")
        with WireClient(broker.port) as wire, WireClient(broker.port) as other:
            wire.find_coordinator(group)
            request = _join_request(group, "", session_ms=300)
            gone = wire.ask(request, 3).member_id
            request.session_timeout_ms = 60_000
            # Answered when the other is out: nothing else is asked meanwhile.
            assert other.ask(request, 3).error_code == ErrorCode.NONE
            beat = HeartbeatRequest(group_id=group, generation_id=1, member_id=gone)
            assert other.ask(beat, 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_zombie_cannot_move_offsets_back(
    groups_broker: GroupsBroker, wire: WireClient, group: str
) -> None:
    """A member that was stuck commits after the group went on: refused (S28)."""
    zombie = stable(wire, group)
    assert commit(wire, group, zombie, 1, 100) == ErrorCode.NONE
    removed = LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=zombie)])
    wire.ask(removed, 5)
    with WireClient(groups_broker.port) as other:
        joined = join(other, group, version=3)
        share = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")
        sync = SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=[share],
        )
        assert other.ask(sync, 4).error_code == ErrorCode.NONE
        assert commit(other, group, joined.member_id, joined.generation_id, 200) == 0
    assert commit(wire, group, zombie, 1, 101) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(wire, group, joined.member_id, 1, 101) == ErrorCode.ILLEGAL_GENERATION
    assert commit(wire, group, "", -1, 101) == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(wire, group) == 200


def test_group_without_a_coordinator_is_told_so() -> None:
    """Before anybody looked for one there is none, and nothing to list."""
    with ottla.testing.Broker() as broker, WireClient(broker.port) as wire:
        refused = wire.ask(_join_request("g", ""), 9)
        assert refused.error_code == ErrorCode.NOT_COORDINATOR
        fetch = OffsetFetchRequest(group_id="g", topics=[])
        assert wire.ask(fetch, 5).error_code == ErrorCode.NOT_COORDINATOR
        wire.find_coordinator("g")
        assert wire.ask(fetch, 5).error_code == ErrorCode.NONE


def test_first_record_in_a_new_group_comes_soon() -> None:
    """Nothing is waited for: Kafka holds a new group's first share back for three seconds."""

    def waited_s() -> float:
        with ottla.testing.Broker(settings={"offsets.topic.num.partitions": "50"}) as broker:
            broker.create_topic("t")
            with WireClient(broker.port) as wire:
                begun_s = time.monotonic()
                wire.find_coordinator("g")
                stable(wire, "g")
                return time.monotonic() - begun_s

    # A delay that is built in would show each time; that the machine stands still does not.
    assert any(waited_s() < 2.5 for _ in range(5))
