"""What is noted of a group of the classic protocol: why it rebalances, and what that cost."""

from ottla.group.group import Group
from ottla.group.member import Member
from ottla.group.state import GroupState
from ottla.group.story.notes import (
    CLASSIC,
    Given,
    GroupEvent,
    Happening,
    MemberStopped,
    Settled,
    Who,
)
from ottla.group.subscription import assigned_partitions, keeps_partitions
from ottla.group.turn import Turn

# What the Java client says when its program did not poll in time.
_POLL_TIMEOUT = "poll timeout"
# A client may say anything; so much of it is kept.
_REASON_LENGTH_MAX = 120


def note_joined(turn: Turn, group: Group, member: Member, reason: str | None) -> None:
    """A member that the group did not know."""
    words = f"it joined{_because(reason)}"
    turn.note(GroupEvent(group.group_id, CLASSIC, Happening.JOINED, member.who, words))
    turn.note(MemberStopped(group.group_id, member.member_id))


def note_changed(
    turn: Turn, group: Group, member: Member, reason: str | None, *, is_unchanged: bool
) -> None:
    """A member joined again of itself."""
    did = "the leader asked for new shares" if is_unchanged else "it reads or offers something else"
    words = f"{did}{_because(reason)}"
    turn.note(GroupEvent(group.group_id, CLASSIC, Happening.CHANGED, member.who, words))


def note_returned(turn: Turn, group: Group, member: Member, *, is_trigger: bool) -> None:
    """A static member is back under a new id."""
    words = "it took its place again under a new member id"
    kind = Happening.RETURNED
    setting = f"group.instance.id={member.group_instance_id}"
    turn.note(
        GroupEvent(group.group_id, CLASSIC, kind, member.who, words, setting, is_trigger=is_trigger)
    )


def note_left(turn: Turn, group: Group, member: Member, reason: str | None) -> None:
    """A member said that it leaves, or an administrator did."""
    setting = None
    if reason is not None and _POLL_TIMEOUT in reason:
        setting = f"max.poll.interval.ms={member.rebalance_timeout_ms}"
    words = f"it left{_because(reason)}"
    turn.note(GroupEvent(group.group_id, CLASSIC, Happening.LEFT, member.who, words, setting))


def note_silent(turn: Turn, group: Group, member: Member) -> None:
    """A member's session is over."""
    if member.is_new:
        waited_ms = turn.settings.new_member_join_timeout_ms
        words = f"it was not heard of again within {waited_ms} ms of its first join"
        setting = None
    else:
        words = f"nothing was heard of it for {member.session_timeout_ms} ms"
        setting = f"session.timeout.ms={member.session_timeout_ms}"
    turn.note(GroupEvent(group.group_id, CLASSIC, Happening.LATE, member.who, words, setting))


def note_did_not_join(turn: Turn, group: Group, member: Member, waited_ms: int) -> None:
    """The join phase ended without a member."""
    words = f"it did not join again within {waited_ms} ms"
    setting = f"max.poll.interval.ms={waited_ms}"
    turn.note(GroupEvent(group.group_id, CLASSIC, Happening.LATE, member.who, words, setting))


def note_did_not_sync(turn: Turn, group: Group, member: Member, waited_ms: int) -> None:
    """The sync phase ended without a member."""
    words = f"it did not ask for its share within {waited_ms} ms"
    setting = f"max.poll.interval.ms={waited_ms}"
    turn.note(GroupEvent(group.group_id, CLASSIC, Happening.LATE, member.who, words, setting))


def note_never_came(turn: Turn, group: Group, member_id: str) -> None:
    """A client did not come back with the member id it was given: a join phase waited for it."""
    if group.state is GroupState.PREPARING_REBALANCE:
        words = "it never came back with the member id it was given"
        setting = "session.timeout.ms"
        who = Who(member_id)
        turn.note(GroupEvent(group.group_id, CLASSIC, Happening.LATE, who, words, setting))


def note_too_many(turn: Turn, group: Group) -> None:
    """The group has more members than are allowed since the broker's last start."""
    limit = turn.settings.max_size
    words = f"it has {len(group.members)} members: those that join first stay"
    setting = f"group.max.size={limit}"
    turn.note(GroupEvent(group.group_id, CLASSIC, Happening.TOO_MANY, None, words, setting))


def note_joining(turn: Turn, group: Group, member: Member) -> None:
    """A member joins again; unless it goes on reading meanwhile, it has no partitions now."""
    if not any(keeps_partitions(metadata) for _, metadata in member.protocols):
        turn.note(MemberStopped(group.group_id, member.member_id))


def note_share(turn: Turn, group: Group, member_id: str, share: bytes) -> None:
    """A member is told its share."""
    partitions = assigned_partitions(share)
    size = 1 if partitions is None else len(partitions)
    turn.note(Given(group.group_id, member_id, size, 0, is_settled=True))


def note_settled(turn: Turn, group: Group, shares: dict[str, bytes]) -> None:
    """The leader has shared out: how many partitions, and how many change hands."""
    stored = () if group.stored is None else group.stored.members
    before = _owners({each.group_instance_id or each.member_id: each.assignment for each in stored})
    after = _owners(
        {
            member.group_instance_id or member_id: shares.get(member_id, b"")
            for member_id, member in group.members.items()
        }
    )
    partitions = moved = -1
    if after is not None:
        partitions = len(after)
        known = before or {}
        moved = sum(known.get(partition) != owner for partition, owner in after.items())
    turn.note(Settled(group.group_id, group.generation, len(group.members), partitions, moved))


def _owners(shares: dict[str, bytes]) -> dict[object, str] | None:
    owners: dict[object, str] = {}
    for owner, share in shares.items():
        partitions = assigned_partitions(share)
        if partitions is None:
            return None
        owners.update(dict.fromkeys(partitions, owner))
    return owners


def _because(reason: str | None) -> str:
    return f": {reason[:_REASON_LENGTH_MAX]}" if reason else ""
