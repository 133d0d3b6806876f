"""What members of groups of every kind are told: heartbeats, syncs and leaving, as by Kafka.

Each test runs against us and against Apache Kafka; the table holds what Kafka 4.3.1 says.
"""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rig.wire_client import WireClient

from ottla.base.errors import ErrorCode
from ottla.wire.messages.classic_membership import (
    HeartbeatRequest,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
)
from ottla.wire.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ShareGroupHeartbeatRequest,
)
from tests.integration.groups.kinds import KINDS, TOPIC, Who

TABLE = Path(__file__).with_name("member_codes.txt")
LOADING = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
Ask = Callable[[WireClient, str, Who], int]


def heartbeat(wire: WireClient, group: str, who: Who, instance_id: str | None = None) -> int:
    request = HeartbeatRequest(
        group_id=group,
        generation_id=who.epoch,
        member_id=who.member_id,
        group_instance_id=instance_id,
    )
    return int(wire.call(request, 4).error_code)


def sync(wire: WireClient, group: str, who: Who, protocol: str = "consumer") -> int:
    request = SyncGroupRequest(
        group_id=group,
        generation_id=who.epoch,
        member_id=who.member_id,
        protocol_type=protocol,
        protocol_name="range",
    )
    return int(wire.call(request, 5).error_code)


def leave(wire: WireClient, group: str, who: Who, instance_id: str | None = None) -> int:
    leaving = MemberIdentity(member_id=who.member_id, group_instance_id=instance_id)
    answer = wire.call(LeaveGroupRequest(group_id=group, members=[leaving]), 4)
    assert answer.error_code == ErrorCode.NONE
    return int(answer.members[0].error_code)


def consumer(
    wire: WireClient, group: str, who: Who, instance_id: str | None = None, *, full: bool = False
) -> int:
    request = ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=who.member_id, member_epoch=who.epoch, instance_id=instance_id
    )
    if full:
        request.rebalance_timeout_ms = 1_000
        request.topic_partitions = []
        request.subscribed_topic_names = [TOPIC]
    return int(wire.call(request, 1).error_code)


def share(wire: WireClient, group: str, who: Who, topics: list[str] | None = None) -> int:
    request = ShareGroupHeartbeatRequest(
        group_id=group,
        member_id=who.member_id,
        member_epoch=who.epoch,
        subscribed_topic_names=topics,
    )
    return int(wire.call(request, 1).error_code)


COLUMNS: dict[str, Ask] = {
    "heartbeat": heartbeat,
    "heartbeat-instance": lambda wire, group, who: heartbeat(wire, group, who, "i"),
    "sync": sync,
    "sync-other": lambda wire, group, who: sync(wire, group, who, "connect"),
    "leave": leave,
    "leave-instance": lambda wire, group, who: leave(wire, group, who, "i"),
    "consumer": consumer,
    "consumer-full": lambda wire, group, who: consumer(wire, group, who, full=True),
    "consumer-instance": lambda wire, group, who: consumer(wire, group, who, "i", full=True),
    "share": share,
    "share-topics": lambda wire, group, who: share(wire, group, who, [TOPIC]),
}


def callers(member: Who) -> dict[str, Who]:
    """Members and others, in their epoch and in others."""
    member_id, epoch = member
    return {
        "empty,-1": Who("", -1),
        "empty,0": Who("", 0),
        "empty,E": Who("", epoch),
        "other,-1": Who("other", -1),
        "other,0": Who("other", 0),
        "other,E": Who("other", epoch),
        "member,-3": Who(member_id, -3),
        "member,-2": Who(member_id, -2),
        "member,-1": Who(member_id, -1),
        "member,0": Who(member_id, 0),
        "member,E": Who(member_id, epoch),
        "member,E+2": Who(member_id, epoch + 2),
    }


def waits(kind: str, column: str, caller: str) -> bool:
    """Whether a sync is answered only when the leader has sent the shares."""
    return (kind, column, caller) == ("joined-classic", "sync", "member,E")


def until_loaded(wire: WireClient, group: str) -> None:
    """Wait for the group's coordinator: while Kafka's loads, it answers heartbeats with NONE."""
    while sync(wire, group, Who("", 0)) in LOADING:
        time.sleep(0.05)


def found_in(wire: WireClient, group: str, kind: str) -> dict[tuple[str, str], list[str]]:
    """The names of the codes by kind and caller; each request is sent to a group of its own."""
    found = {}
    for caller in callers(Who("", 0)):
        codes = []
        for column, ask in COLUMNS.items():
            if waits(kind, column, caller):
                codes.append("-")
                continue
            own = f"{group}-{caller}-{column}"
            until_loaded(wire, own)
            code = ask(wire, own, callers(KINDS[kind](wire, own))[caller])
            codes.append(ErrorCode(code).name)
        found[kind, caller] = codes
    return found


@pytest.mark.parametrize("kind", list(KINDS))
def test_what_members_and_others_are_told(either: WireClient, group: str, kind: str) -> None:
    """Every API of members, by callers that are members of such a group and that are not."""
    expected = {}
    for line in TABLE.read_text().splitlines():
        if not line.startswith("#"):
            of, caller, *codes = line.split()
            if of == kind:
                expected[of, caller] = codes
    assert found_in(either, group, kind) == expected
