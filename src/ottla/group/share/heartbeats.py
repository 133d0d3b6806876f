"""ShareGroupHeartbeat: join, get an assignment, leave (KIP-932).

The group epoch rises when members, subscriptions or topics change, and a new target assignment is
computed for it. A member gets its part of the target at once: other members need not revoke
partitions first, since a share group locks records and not partitions.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from ottla.base.errors import ErrorCode, OttlaError
from ottla.group.consumer.assignors import Subscriber, simple
from ottla.group.consumer.heartbeats import is_blank
from ottla.group.model.consumer_group import FIRST_EPOCH
from ottla.group.model.share_group import ShareGroup
from ottla.group.model.turn import Call, Turn, change
from ottla.group.records.share import (
    ShareCurrent,
    ShareCurrentRecord,
    ShareEpochRecord,
    ShareMemberMetadata,
    ShareMemberRecord,
    ShareTargetEpochRecord,
    ShareTargetRecord,
    TopicState,
)
from ottla.group.share.state_topics import missing
from ottla.group.values.settings import Pace
from ottla.group.values.timers import Due, TimerKey
from ottla.group.values.topics import (
    NOTHING,
    AssignedSlot,
    TopicShape,
    TopicsView,
    shape_hash,
    topics_of,
)
from ottla.wire.messages.consumer_groups import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

JOIN = 0
LEAVE = -1
# As in Kafka: members make their own ids, which are UUIDs.
_MEMBER_ID_LENGTH_MAX = 36
_NEW = ShareCurrent(JOIN, JOIN, NOTHING)


@dataclass(frozen=True, slots=True)
class HeartbeatResult:
    """The outcome of a heartbeat: the answer, and the state to be initialized or deleted.

    `epoch` is the group epoch; it becomes the state epoch of state that is initialized.
    """

    response: ShareGroupHeartbeatResponse
    epoch: int = 0
    to_begin: tuple[TopicState, ...] = ()
    to_delete: tuple[TopicState, ...] = ()


def require_valid(request: ShareGroupHeartbeatRequest) -> None:
    """Raise OttlaError (INVALID_REQUEST) if a heartbeat is invalid for any group."""
    _forbid(not request.group_id.strip(), "GroupId can't be empty.")
    _forbid(not request.member_id.strip(), "MemberId can't be empty.")
    _forbid(len(request.member_id) > _MEMBER_ID_LENGTH_MAX, "MemberId is too long.")
    _forbid(is_blank(request.rack_id), "RackId can't be empty.")
    _forbid(request.member_epoch < LEAVE, f"MemberEpoch {request.member_epoch} is invalid.")
    _forbid(
        request.member_epoch == JOIN and not request.subscribed_topic_names,
        "SubscribedTopicNames must be set in first request.",
    )


def heartbeat(
    turn: Turn,
    group: ShareGroup,
    call: Call,
    request: ShareGroupHeartbeatRequest,
    topics: TopicsView,
    pace: Pace,
) -> HeartbeatResult:
    """Update a member from its heartbeat, and answer with its assignment.

    Raises OttlaError: UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, GROUP_MAX_SIZE_REACHED.
    """
    member_id = request.member_id
    if request.member_epoch == LEAVE:
        _require_known(group, member_id)
        remove(turn, group, member_id)
        return HeartbeatResult(ShareGroupHeartbeatResponse(member_id=member_id, member_epoch=LEAVE))
    if request.member_epoch == JOIN:
        _require_room(turn, group, member_id)
    else:
        _require_member(group, request)
    is_changed = _update(turn, group, member_id, call, request)
    shapes = _follow_topics(turn, group, topics, is_changed=is_changed)
    before = group.current.get(member_id, _NEW)
    assigned = group.target_of(member_id)
    if before.epoch != group.target_epoch or before.assigned != assigned:
        after = ShareCurrent(group.target_epoch, before.epoch, assigned)
        change(turn, group, ShareCurrentRecord(group.group_id, member_id, after))
    keep_alive(turn, group, member_id, pace)
    needs_assignment = (
        request.member_epoch == JOIN
        or request.member_epoch != group.target_epoch
        or request.subscribed_topic_names is not None
        or assigned != before.assigned
    )
    response = ShareGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=group.target_epoch,
        heartbeat_interval_ms=pace.heartbeat_interval_ms,
        assignment=_assignment(assigned) if needs_assignment else None,
    )
    to_begin = tuple(missing(group, shapes))
    return HeartbeatResult(response, group.epoch, to_begin, tuple(group.deleting.values()))


def start(turn: Turn, group: ShareGroup) -> None:
    """Start the members' sessions when a new coordinator has loaded the group."""
    settings = turn.settings
    pace = Pace(settings.share_session_timeout_ms, settings.share_heartbeat_interval_ms)
    for member_id in group.members:
        keep_alive(turn, group, member_id, pace)


def keep_alive(turn: Turn, group: ShareGroup, member_id: str, pace: Pace) -> None:
    """Restart the session of a member after a heartbeat."""
    key = TimerKey(Due.SESSION, group.group_id, member_id)
    turn.timers.set(key, turn.now_ms + pace.session_timeout_ms)


def remove(turn: Turn, group: ShareGroup, member_id: str) -> None:
    """Remove a member; the others get the new assignment with their next heartbeats."""
    change(turn, group, ShareCurrentRecord(group.group_id, member_id, None))
    change(turn, group, ShareTargetRecord(group.group_id, member_id, None))
    change(turn, group, ShareMemberRecord(group.group_id, member_id, None))
    change(turn, group, ShareEpochRecord(group.group_id, group.epoch + 1, group.topics_hash))
    group.seen_topics = None
    turn.timers.cancel(TimerKey(Due.SESSION, group.group_id, member_id))


def _require_room(turn: Turn, group: ShareGroup, member_id: str) -> None:
    size = turn.settings.share_max_size
    if member_id not in group.members and len(group.members) >= size:
        raise OttlaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The share group has reached its maximum capacity of {size} members.",
        )


def _require_known(group: ShareGroup, member_id: str) -> None:
    if member_id not in group.members:
        raise OttlaError(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"Member {member_id} is not a member of group {group.group_id}.",
        )


def _require_member(group: ShareGroup, request: ShareGroupHeartbeatRequest) -> None:
    """Check that the caller is a member, in its current epoch or the previous one.

    The previous one is accepted since the answer that raised it may be lost. Raises OttlaError:
    UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH.
    """
    _require_known(group, request.member_id)
    current = group.current.get(request.member_id, _NEW)
    if request.member_epoch not in (current.epoch, current.previous_epoch):
        raise OttlaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member is in epoch {request.member_epoch}, the coordinator has it "
            f"in {current.epoch}: it must abandon all its partitions and rejoin.",
        )


def _update(
    turn: Turn,
    group: ShareGroup,
    member_id: str,
    call: Call,
    request: ShareGroupHeartbeatRequest,
) -> bool:
    """Update the member from its request; return whether its subscription changed."""
    before = group.members.get(member_id)
    base = before or ShareMemberMetadata(None, "", "", ())
    names = request.subscribed_topic_names
    after = replace(
        base,
        rack_id=base.rack_id if request.rack_id is None else request.rack_id,
        client_id=call.client_id,
        client_host=call.client_host,
        topic_names=base.topic_names if names is None else tuple(sorted(set(names))),
    )
    if after == before:
        return False
    change(turn, group, ShareMemberRecord(group.group_id, member_id, after))
    group.seen_topics = None
    return before is None or after.topic_names != before.topic_names


def _follow_topics(
    turn: Turn, group: ShareGroup, topics: TopicsView, *, is_changed: bool
) -> Collection[TopicShape]:
    """Raise the group epoch if members or topics changed; compute a new target if it is behind."""
    shapes = _shapes(group, topics)
    topics_hash = shape_hash(shapes.values())
    if is_changed or topics_hash != group.topics_hash:
        # As in Kafka, a new group is in epoch 1, and the topic names of its first member raise it.
        epoch = (group.epoch or FIRST_EPOCH) + 1
        change(turn, group, ShareEpochRecord(group.group_id, epoch, topics_hash))
    if group.epoch > group.target_epoch:
        _assign(turn, group, shapes)
    return shapes.values()


def _shapes(group: ShareGroup, topics: TopicsView) -> dict[str, TopicShape]:
    """The topics, by name, that a member subscribes to and that exist."""
    names = {name for metadata in group.members.values() for name in metadata.topic_names}
    found = ((name, topics.find(name)) for name in names)
    return {name: shape for name, shape in found if shape is not None}


def _assign(turn: Turn, group: ShareGroup, shapes: dict[str, TopicShape]) -> None:
    # The assignor takes a count: assign the partitions from 0 up to the first without state.
    counts = {
        shape.id: _begun_count(group, shape)
        for shape in shapes.values()
        if _begun_count(group, shape)
    }
    target = simple(
        {
            member_id: Subscriber(
                frozenset(
                    shapes[name].id
                    for name in metadata.topic_names
                    if name in shapes and shapes[name].id in counts
                ),
                None,
                group.target_of(member_id),
            )
            for member_id, metadata in group.members.items()
        },
        counts,
    )
    for member_id, share in sorted(target.items()):
        if group.target.get(member_id) != share:
            change(turn, group, ShareTargetRecord(group.group_id, member_id, share))
    record = ShareTargetEpochRecord(group.group_id, group.epoch, turn.timestamp_ms)
    change(turn, group, record)


def _begun_count(group: ShareGroup, shape: TopicShape) -> int:
    """How many partitions from 0 up have initialized state."""
    known = group.begun.get(shape.id)
    count = 0
    while known is not None and count < shape.partitions and count in known.partitions:
        count += 1
    return count


def _assignment(share: Collection[AssignedSlot]) -> Assignment:
    return Assignment(topic_partitions=topics_of(share, TopicPartitions))


def _forbid(condition: bool, words: str) -> None:
    if condition:
        raise OttlaError(ErrorCode.INVALID_REQUEST, words)
