"""The epoch of a group rises with its members and their topics; the target follows it."""

from collections.abc import Collection

from ottla.group.consumer.assignors import ASSIGNORS, Subscriber
from ottla.group.consumer.causes import note_target, note_topics_changed
from ottla.group.consumer.subscriptions import Subscriptions, resolve
from ottla.group.model.consumer_group import FIRST_EPOCH, NO_EPOCH, ConsumerGroup
from ottla.group.model.turn import Turn, change
from ottla.group.records.consumer import EpochRecord, TargetEpochRecord, TargetRecord
from ottla.group.values.topics import shape_hash


def follow_topics(turn: Turn, group: ConsumerGroup, *, is_changed: bool) -> None:
    """Raise the epoch where members or topics have changed, and have the target follow it."""
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
    """Note what members read by patterns; whether one of them reads other topics than before.

    One that was heard now for the first time does, where the target was made without its sight.
    """
    is_changed = False
    for member_id in group.sights:
        topic_ids = subscriptions.by_member[member_id]
        before = group.read_by.get(member_id)
        is_changed |= member_id in group.unheard if before is None else before != topic_ids
        group.read_by[member_id] = topic_ids
    return is_changed


def _next_epoch(group: ConsumerGroup) -> int:
    """One more than before. As in Kafka, a new group is in epoch 1, and topic names raise it."""
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
    """The assignor that most members ask for; the broker's first where none asks."""
    votes: dict[str, int] = {}
    for metadata in group.members.values():
        if metadata.server_assignor in offered:
            name = str(metadata.server_assignor)
            votes[name] = votes.get(name, 0) + 1
    order = list(offered)
    return max(order, key=lambda name: (votes.get(name, 0), -order.index(name)))
