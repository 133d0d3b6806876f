"""Notes on a group of the classic protocol: why it rebalances, and how long it takes."""

from ottla.group.model.group import Group, GroupState
from ottla.group.model.turn import Turn
from ottla.group.values.member import Member, assigned_partitions, keeps_partitions
from ottla.group.values.notes import (
    CLASSIC,
    Given,
    GroupEvent,
    Happening,
    MemberIdentity,
    MemberStopped,
    Settled,
)

# The Java client's reason when its program did not poll in time.
_POLL_TIMEOUT = "poll timeout"
# The most characters kept of a client's reason, which may have any length.
_REASON_LENGTH_MAX = 120


def note_joined(turn: Turn, group: Group, member: Member, reason: str | None) -> None:
    """Note a new member."""
    words = f"it joined{_because(reason)}"
    turn.note(GroupEvent(group.group_id, CLASSIC, Happening.JOINED, member.identity, words))
    turn.note(MemberStopped(group.group_id, member.member_id))


def note_changed(
    turn: Turn, group: Group, member: Member, reason: str | None, *, is_unchanged: bool
) -> None:
    """Note that a member sent JoinGroup again although no rebalance asked it to."""
    did = "the leader asked for new shares" if is_unchanged else "it reads or offers something else"
    words = f"{did}{_because(reason)}"
    turn.note(GroupEvent(group.group_id, CLASSIC, Happening.CHANGED, member.identity, words))


def note_returned(turn: Turn, group: Group, member: Member, *, is_trigger: bool) -> None:
    """Note that a static member is back under a new id."""
    words = "it took its place again under a new member id"
    kind = Happening.RETURNED
    setting = f"group.instance.id={member.group_instance_id}"
    turn.note(
        GroupEvent(
            group.group_id, CLASSIC, kind, member.identity, words, setting, is_trigger=is_trigger
        )
    )


def note_left(turn: Turn, group: Group, member: Member, reason: str | None) -> None:
    """Note that a member left, or an administrator removed it."""
    setting = None
    if reason is not None and _POLL_TIMEOUT in reason:
        setting = f"max.poll.interval.ms={member.rebalance_timeout_ms}"
    words = f"it left{_because(reason)}"
    turn.note(GroupEvent(group.group_id, CLASSIC, Happening.LEFT, member.identity, words, setting))


def note_silent(turn: Turn, group: Group, member: Member) -> None:
    """Note that a member's session has ended."""
    if member.is_new:
        waited_ms = turn.settings.new_member_join_timeout_ms
        words = f"it was not heard of again within {waited_ms} ms of its first join"
        setting = None
    else:
        words = f"it sent no heartbeat for {member.session_timeout_ms} ms"
        setting = f"session.timeout.ms={member.session_timeout_ms}"
    turn.note(GroupEvent(group.group_id, CLASSIC, Happening.LATE, member.identity, words, setting))


def note_did_not_join(turn: Turn, group: Group, member: Member, waited_ms: int) -> None:
    """Note that the join phase ended without a member."""
    words = f"it did not join again within {waited_ms} ms"
    setting = f"max.poll.interval.ms={waited_ms}"
    turn.note(GroupEvent(group.group_id, CLASSIC, Happening.LATE, member.identity, words, setting))


def note_did_not_sync(turn: Turn, group: Group, member: Member, waited_ms: int) -> None:
    """Note that the sync phase ended without a member."""
    words = f"it did not ask for its assignment within {waited_ms} ms"
    setting = f"max.poll.interval.ms={waited_ms}"
    turn.note(GroupEvent(group.group_id, CLASSIC, Happening.LATE, member.identity, words, setting))


def note_never_came(turn: Turn, group: Group, member_id: str) -> None:
    """Note a client that did not join with its new member id while a join phase waited."""
    if group.state is GroupState.PREPARING_REBALANCE:
        words = "it never came back with the member id it was given"
        setting = "session.timeout.ms"
        identity = MemberIdentity(member_id)
        turn.note(GroupEvent(group.group_id, CLASSIC, Happening.LATE, identity, words, setting))


def note_too_many(turn: Turn, group: Group) -> None:
    """Note that the group has more members than the limit, which was lowered at a restart."""
    limit = turn.settings.max_size
    words = f"it has {len(group.members)} members: those that join first stay"
    setting = f"group.max.size={limit}"
    turn.note(GroupEvent(group.group_id, CLASSIC, Happening.TOO_MANY, None, words, setting))


def note_joining(turn: Turn, group: Group, member: Member) -> None:
    """Note that a member joins again, and has no partitions meanwhile unless it keeps them."""
    if not any(keeps_partitions(metadata) for _, metadata in member.protocols):
        turn.note(MemberStopped(group.group_id, member.member_id))


def note_share(turn: Turn, group: Group, member_id: str, share: bytes) -> None:
    """Note that a member got its assignment."""
    partitions = assigned_partitions(share)
    size = 1 if partitions is None else len(partitions)
    turn.note(Given(group.group_id, member_id, size, 0, is_settled=True))


def note_settled(turn: Turn, group: Group, shares: dict[str, bytes]) -> None:
    """Note the leader's assignment: how many partitions, and how many move."""
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
