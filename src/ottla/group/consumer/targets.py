"""Target assignments of a consumer group, and how members reach them (KIP-848).

The epoch of a group rises with its members and their topics; the target follows it. A member first
revokes partitions, then gets new ones. A partition is assigned only once no other member has it, so
that two members never read the same one.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

from ottla.base.patterns import compiled
from ottla.group.consumer.assignors import ASSIGNORS, Subscriber
from ottla.group.consumer.causes import note_target, note_topics_changed
from ottla.group.model.consumer_group import FIRST_EPOCH, NO_EPOCH, ConsumerGroup
from ottla.group.model.turn import Turn, change
from ottla.group.records.consumer import (
    Current,
    EpochRecord,
    MemberState,
    TargetEpochRecord,
    TargetRecord,
)
from ottla.group.values.topics import (
    NOTHING,
    AssignedSlot,
    Share,
    Sight,
    TopicShape,
    TopicsView,
    shape_hash,
)


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """The existing topics that each member reads.

    `names` also has topics that do not exist, and topics that match a pattern but that the member
    may not see. `unheard` are members with a pattern whose sight is not known yet; of the topics
    that match, they keep those that are assigned to them.
    """

    names: frozenset[str]
    shapes: dict[UUID, TopicShape]
    by_member: dict[str, frozenset[UUID]]
    unheard: frozenset[str]


def require_pattern(pattern: str) -> None:
    """Raise OttlaError (INVALID_REGULAR_EXPRESSION) if RE2 cannot read the pattern."""
    _compiled(pattern)


def resolve(group: ConsumerGroup, topics: TopicsView) -> Subscriptions:
    """Determine which topics each member reads."""
    patterns = {each.topic_regex for each in group.members.values() if each.topic_regex}
    matching = {pattern: _matching(pattern, topics.names()) for pattern in patterns}
    names: set[str] = set()
    shapes: dict[UUID, TopicShape] = {}
    by_member: dict[str, frozenset[UUID]] = {}
    unheard: set[str] = set()
    for member_id, metadata in group.members.items():
        wanted = set(metadata.topic_names)
        if metadata.topic_regex:
            matched = matching[metadata.topic_regex]
            names |= matched
            sight = group.sights.get(member_id)
            if sight is None:
                unheard.add(member_id)
                sight = _sight_of_share(group, member_id, topics)
            wanted.update(name for name in matched if sight(name))
        names |= wanted
        ids = set()
        for name in wanted:
            shape = topics.find(name)
            if shape is not None:
                shapes[shape.id] = shape
                ids.add(shape.id)
        by_member[member_id] = frozenset(ids)
    return Subscriptions(frozenset(names), shapes, by_member, frozenset(unheard))


def _sight_of_share(group: ConsumerGroup, member_id: str, topics: TopicsView) -> Sight:
    """Return a sight of the topics assigned to a member, for use while its own is not known."""
    held = {topics.name_of(slot.topic_id) for slot in group.target_of(member_id)}
    return lambda name: name in held


def _matching(pattern: str, names: Iterable[str]) -> frozenset[str]:
    """Topics whose whole name matches, internal topics included.

    Internal topics are left out only by clients that resolve their pattern themselves.
    """
    found = _compiled(pattern)
    return frozenset(name for name in names if found.fullmatch(name))


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> Any:
    return compiled(pattern, "SubscribedTopicRegex")


# Whether some other member has the partition, or has yet to revoke it.
IsTaken = Callable[[AssignedSlot], bool]


def reconcile(
    current: Current,
    target_epoch: int,
    target: Share,
    is_taken: IsTaken,
    owned: Collection[AssignedSlot] | None,
) -> Current:
    """Return the member's next assignment, or `current` if it does not change.

    `owned` are the partitions that the member reports as owned; None if its request has no list.
    """
    match current.state:
        case MemberState.STABLE:
            if current.epoch == target_epoch:
                return current
            return _step(current, target_epoch, target, is_taken, owned)
        case MemberState.UNREVOKED_PARTITIONS:
            if owned is None or not current.revoking.isdisjoint(owned):
                return current
            return _step(current, target_epoch, target, is_taken, owned)
        case MemberState.UNRELEASED_PARTITIONS:
            return _step(current, target_epoch, target, is_taken, owned)


def _step(
    current: Current,
    target_epoch: int,
    target: Share,
    is_taken: IsTaken,
    owned: Collection[AssignedSlot] | None,
) -> Current:
    kept = current.assigned & target
    revoking = current.assigned - target
    if revoking and (owned is None or not revoking.isdisjoint(owned)):
        return Current(
            current.epoch,
            current.previous_epoch,
            MemberState.UNREVOKED_PARTITIONS,
            kept,
            revoking,
            current.given,
        )
    wanted = target - kept
    free = frozenset(slot for slot in wanted if not is_taken(slot))
    state = MemberState.STABLE if len(free) == len(wanted) else MemberState.UNRELEASED_PARTITIONS
    previous = current.previous_epoch if current.epoch == target_epoch else current.epoch
    given = {slot: current.given_in(slot) for slot in kept} | dict.fromkeys(free, target_epoch)
    after = Current(target_epoch, previous, state, kept | free, NOTHING, given)
    return current if after == current else after


def follow_topics(turn: Turn, group: ConsumerGroup, *, is_changed: bool) -> None:
    """Raise the group epoch if members or topics changed; compute a new target if it is behind."""
    topics = turn.topics
    if group.seen_topics is topics.token and not is_changed and group.epoch == group.target_epoch:
        return
    subscriptions = resolve(group, topics)
    group.subscribed = subscriptions.names
    is_changed = _take_sights(group, subscriptions) or is_changed
    group.seen_topics = topics.token
    topics_hash = shape_hash(subscriptions.shapes.values())
    is_new = group.epoch == NO_EPOCH
    if is_changed or is_new or topics_hash != group.topics_hash:
        if not (is_changed or is_new):
            note_topics_changed(turn, group)
        change(turn, group, EpochRecord(group.group_id, _next_epoch(group), topics_hash))
    if group.epoch > group.target_epoch:
        _assign(turn, group, subscriptions)
        group.unheard = subscriptions.unheard


def _take_sights(group: ConsumerGroup, subscriptions: Subscriptions) -> bool:
    """Store the topics that members with patterns read; return whether they have changed.

    Also returns True if the target was computed before a member's sight was known.
    """
    is_changed = False
    for member_id in group.sights:
        topic_ids = subscriptions.by_member[member_id]
        before = group.read_by.get(member_id)
        is_changed |= member_id in group.unheard if before is None else before != topic_ids
        group.read_by[member_id] = topic_ids
    return is_changed


def _next_epoch(group: ConsumerGroup) -> int:
    """Return the next group epoch. As in Kafka, a new group has epoch 1, or 2 with topic names."""
    if group.epoch == NO_EPOCH:
        has_names = any(metadata.topic_names for metadata in group.members.values())
        return FIRST_EPOCH + has_names
    return group.epoch + 1


def _assign(turn: Turn, group: ConsumerGroup, subscriptions: Subscriptions) -> None:
    assign = ASSIGNORS[preferred_assignor(group, turn.settings.consumer_assignors)]
    target = assign(
        {
            member_id: Subscriber(
                subscriptions.by_member[member_id],
                metadata.instance_id,
                group.target_of(member_id),
            )
            for member_id, metadata in group.members.items()
        },
        {topic_id: shape.partitions for topic_id, shape in subscriptions.shapes.items()},
    )
    for member_id, share in sorted(target.items()):
        if group.target.get(member_id) != share:
            change(turn, group, TargetRecord(group.group_id, member_id, share))
    record = TargetEpochRecord(group.group_id, group.epoch, turn.timestamp_ms)
    change(turn, group, record)
    note_target(turn, group)


def preferred_assignor(group: ConsumerGroup, offered: Collection[str]) -> str:
    """The assignor that most members request; the broker's first one if no member requests any."""
    votes: dict[str, int] = {}
    for metadata in group.members.values():
        if metadata.server_assignor in offered:
            name = str(metadata.server_assignor)
            votes[name] = votes.get(name, 0) + 1
    order = list(offered)
    return max(order, key=lambda name: (votes.get(name, 0), -order.index(name)))
