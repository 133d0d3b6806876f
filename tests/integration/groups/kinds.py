"""Groups of every kind, made over the wire, and callers that may or may not belong to them."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from rig.wire_client import WireClient

from ottla.base.errors import ErrorCode
from ottla.wire.messages.classic_membership import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from ottla.wire.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ShareGroupHeartbeatRequest,
)
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.unit.group.driver import subscription

TOPIC = "t"
PATIENCE_S = 120.0
_PASSING = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}


class Who(NamedTuple):
    """A member, and the epoch or generation it is in."""

    member_id: str
    epoch: int


# A program without a group that only stores offsets.
ALONE = Who("", -1)


def patiently(
    ask: Callable[[], Any], code_of: Callable[[Any], int] = lambda answer: answer.error_code
) -> Any:
    """Ask until the answer is no passing trouble of a coordinator that starts."""
    deadline_s = time.monotonic() + PATIENCE_S
    while code_of(answer := ask()) in _PASSING:
        assert time.monotonic() < deadline_s, answer
        time.sleep(0.02)
    return answer


def find(wire: WireClient, key: str, key_type: int = 0) -> None:
    """Have the coordinator's topic created."""
    patiently(lambda: wire.call(FindCoordinatorRequest(key=key, key_type=key_type), 3))


def topic_id(wire: WireClient) -> UUID:
    """The id of the topic the groups read."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    found: UUID = wire.call(request, 12).topics[0].topic_id
    return found


def consumer_joins(wire: WireClient, group: str, version: int = 1, **fields: Any) -> Any:
    """The answer to a join under the consumer protocol."""
    given = {
        "member_id": str(uuid4()),
        "rebalance_timeout_ms": 30_000,
        "topic_partitions": [],
        "subscribed_topic_names": [TOPIC],
        **fields,
    }
    request = ConsumerGroupHeartbeatRequest(group_id=group, **given)
    return patiently(lambda: wire.call(request, version))


def beat(wire: WireClient, group: str, member_id: str, epoch: int, **fields: Any) -> Any:
    """The answer to a heartbeat of the consumer protocol."""
    request = ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=member_id, member_epoch=epoch, **fields
    )
    return wire.call(request, 1)


def share_joins(
    wire: WireClient, group: str, topics: list[str], member_id: str | None = None
) -> Any:
    """The answer to a join of a share group."""
    request = ShareGroupHeartbeatRequest(
        group_id=group, member_id=member_id or str(uuid4()), subscribed_topic_names=topics
    )
    return patiently(lambda: wire.call(request, 1))


def join_request(
    group: str,
    member_id: str = "",
    *,
    metadata: bytes | None = None,
    instance_id: str | None = None,
) -> JoinGroupRequest:
    """A join under the classic protocol."""
    own = subscription(TOPIC) if metadata is None else metadata
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=own)],
    )


def classic_joins(
    wire: WireClient, group: str, *, instance_id: str | None = None, syncs: bool = True
) -> JoinGroupResponse:
    """Join under the classic protocol, and ask for the share."""
    member_id = ""
    while True:
        request = join_request(group, member_id, instance_id=instance_id)
        joined: JoinGroupResponse = patiently(partial(wire.call, request, 5))
        if joined.error_code != ErrorCode.MEMBER_ID_REQUIRED:
            break
        member_id = joined.member_id
    assert joined.error_code == ErrorCode.NONE
    if syncs:
        share = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"")
        sync = SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=instance_id,
            assignments=[share],
        )
        assert wire.call(sync, 3).error_code == ErrorCode.NONE
    return joined


def commit(
    wire: WireClient,
    group: str,
    who: Who = ALONE,
    partitions: tuple[int, ...] = (0,),
    version: int = 9,
) -> list[ErrorCode]:
    """What each partition is answered, in order of the request."""
    topic = OffsetCommitRequestTopic(
        partitions=[
            OffsetCommitRequestPartition(
                partition_index=each, committed_offset=5, committed_metadata=""
            )
            for each in partitions
        ]
    )
    if version < 10:
        topic.name = TOPIC
    else:
        topic.topic_id = topic_id(wire)
    request = OffsetCommitRequest(
        group_id=group,
        member_id=who.member_id,
        generation_id_or_member_epoch=who.epoch,
        topics=[topic],
    )
    answer = patiently(
        lambda: wire.call(request, version), lambda each: each.topics[0].partitions[0].error_code
    )
    codes = {each.partition_index: each.error_code for each in answer.topics[0].partitions}
    return [ErrorCode(codes[each]) for each in partitions]


def _absent(_wire: WireClient, _group: str) -> Who:
    return Who("x", 5)


def _simple(wire: WireClient, group: str) -> Who:
    assert commit(wire, group) == [ErrorCode.NONE]
    return Who("x", 5)


def _consumer(wire: WireClient, group: str) -> Who:
    joined = consumer_joins(wire, group)
    return Who(joined.member_id, joined.member_epoch)


def _empty_consumer(wire: WireClient, group: str) -> Who:
    who = _consumer(wire, group)
    assert beat(wire, group, who.member_id, -1).error_code == ErrorCode.NONE
    return who


def _classic(wire: WireClient, group: str) -> Who:
    joined = classic_joins(wire, group)
    return Who(joined.member_id, joined.generation_id)


def _static_classic(wire: WireClient, group: str) -> Who:
    joined = classic_joins(wire, group, instance_id="i")
    return Who(joined.member_id, joined.generation_id)


def _joined_classic(wire: WireClient, group: str) -> Who:
    joined = classic_joins(wire, group, syncs=False)
    return Who(joined.member_id, joined.generation_id)


def _empty_classic(wire: WireClient, group: str) -> Who:
    who = _classic(wire, group)
    leaving = [MemberIdentity(member_id=who.member_id)]
    wire.call(LeaveGroupRequest(group_id=group, members=leaving), 4)
    return who


def _mixed(wire: WireClient, group: str) -> Who:
    who = _classic(wire, group)
    assert consumer_joins(wire, group).error_code == ErrorCode.NONE
    return who


def _share(wire: WireClient, group: str) -> Who:
    joined = share_joins(wire, group, [TOPIC])
    return Who(joined.member_id, joined.member_epoch)


# Each makes a group and gives one who is, or was, a member of it. In `mixed` that is a classic
# member beside one of the consumer protocol.
KINDS: dict[str, Callable[[WireClient, str], Who]] = {
    "absent": _absent,
    "simple": _simple,
    "consumer": _consumer,
    "empty-consumer": _empty_consumer,
    "mixed": _mixed,
    "classic": _classic,
    "static-classic": _static_classic,
    "joined-classic": _joined_classic,
    "empty-classic": _empty_classic,
    "share": _share,
}
