"""Notes on a group of the consumer protocol: why its epoch rose, and how long it took."""

from ottla.group.model.consumer_group import AWAY, ConsumerGroup
from ottla.group.model.turn import Turn
from ottla.group.records.consumer import Current, MemberMetadata, MemberState
from ottla.group.values.notes import (
    CONSUMER,
    Given,
    GroupEvent,
    Happening,
    MemberIdentity,
    MemberStopped,
    Settled,
    Targeted,
)


def note_joined(turn: Turn, group: ConsumerGroup, member_id: str) -> None:
    """Note a new member."""
    _note(turn, group, Happening.JOINED, member_id, "it joined")
    turn.note(MemberStopped(group.group_id, member_id))


def note_changed(turn: Turn, group: ConsumerGroup, member_id: str) -> None:
    """Note that a member reads other topics than before."""
    _note(turn, group, Happening.CHANGED, member_id, "it reads other topics")


def note_returned(turn: Turn, group: ConsumerGroup, member_id: str) -> None:
    """Note that a static member is back under a new id."""
    setting = f"group.instance.id={group.members[member_id].instance_id}"
    words = "it took its place again under a new member id"
    _note(turn, group, Happening.RETURNED, member_id, words, setting, is_trigger=False)


def note_away(turn: Turn, group: ConsumerGroup, member_id: str) -> None:
    """Note that a static member has left for a while (epoch -2)."""
    setting = f"group.instance.id={group.members[member_id].instance_id}"
    words = "it left for a while; its partitions wait for it until its session ends"
    _note(turn, group, Happening.LEFT, member_id, words, setting, is_trigger=False)
    turn.note(Given(group.group_id, member_id, 0, 0, is_settled=True))


def note_left(turn: Turn, group: ConsumerGroup, member_id: str, words: str) -> None:
    """Note that a member left, or was removed."""
    _note(turn, group, Happening.LEFT, member_id, words)


def note_late(turn: Turn, group: ConsumerGroup, member_id: str, words: str, setting: str) -> None:
    """Note that a member missed a deadline."""
    _note(turn, group, Happening.LATE, member_id, words, setting)


def note_topics_changed(turn: Turn, group: ConsumerGroup) -> None:
    """Note that a topic of the group was created, deleted or given more partitions."""
    words = "topics that its members read were created, deleted or given more partitions"
    turn.note(GroupEvent(group.group_id, CONSUMER, Happening.TOPICS_CHANGED, None, words))


def note_target(turn: Turn, group: ConsumerGroup) -> None:
    """Note a new target assignment; static members that left for a while are not awaited."""
    sizes = {
        member_id: len(group.target_of(member_id))
        for member_id in group.members
        if (current := group.current.get(member_id)) is None or current.epoch != AWAY
    }
    turn.note(Targeted(group.group_id, group.target_epoch, sizes))


def note_step(
    turn: Turn, group: ConsumerGroup, member_id: str, before: Current, after: Current
) -> None:
    """Note a member's step towards its target."""
    if not after.assigned and group.target_of(member_id):
        turn.note(MemberStopped(group.group_id, member_id))
    gained = len(after.assigned - before.assigned)
    is_settled = after.state is MemberState.STABLE and after.epoch == group.target_epoch
    turn.note(Given(group.group_id, member_id, len(after.assigned), gained, is_settled=is_settled))


def note_empty(turn: Turn, group: ConsumerGroup) -> None:
    """Note that the group has no members any more."""
    turn.note(Settled(group.group_id, group.epoch, 0, 0, 0))


def _note(
    turn: Turn,
    group: ConsumerGroup,
    kind: Happening,
    member_id: str,
    words: str,
    setting: str | None = None,
    *,
    is_trigger: bool = True,
) -> None:
    identity = _identity(member_id, group.members[member_id])
    turn.note(
        GroupEvent(group.group_id, CONSUMER, kind, identity, words, setting, is_trigger=is_trigger)
    )


def _identity(member_id: str, metadata: MemberMetadata) -> MemberIdentity:
    return MemberIdentity(member_id, metadata.client_id, metadata.client_host, metadata.instance_id)
