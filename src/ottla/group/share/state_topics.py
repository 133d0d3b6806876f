"""The partitions of a share group whose share state is initialized; only these are assigned.

A command returns the partitions whose state the share coordinators have to initialize or delete; a
second command records in the group that they have done so. Each step can be repeated, so the
group coordinator may fail between any two.
"""

from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

from ottla.group.model.share_group import ShareGroup
from ottla.group.model.turn import Turn, change
from ottla.group.records.share import (
    ShareEpochRecord,
    ShareStateRecord,
    TopicState,
)
from ottla.group.values.topics import TopicShape


def missing(group: ShareGroup, shapes: Iterable[TopicShape]) -> list[TopicState]:
    """The partitions of these topics whose state has to be initialized."""
    found = []
    for shape in sorted(shapes):
        known = group.begun.get(shape.id)
        lacking = frozenset(range(shape.partitions)) - (known.partitions if known else frozenset())
        if lacking and shape.id not in group.deleting:
            found.append(TopicState(shape.id, shape.name, lacking))
    return found


def note_begun(turn: Turn, group: ShareGroup, topics: Iterable[TopicState]) -> None:
    """Record that the state of these partitions is initialized: they may be assigned to members."""
    begun = dict(group.begun)
    for topic in topics:
        known = begun.get(topic.id)
        partitions = topic.partitions | (known.partitions if known else frozenset())
        begun[topic.id] = replace(topic, partitions=partitions)
    if begun == group.begun:
        return
    _write(turn, group, begun, group.deleting)
    change(turn, group, ShareEpochRecord(group.group_id, group.epoch + 1, group.topics_hash))
    group.seen_topics = None


def start_deleting(turn: Turn, group: ShareGroup, topic_ids: Iterable[UUID]) -> list[TopicState]:
    """Remove topics from the group; return all topics whose state has to be deleted."""
    begun, deleting = dict(group.begun), dict(group.deleting)
    for topic_id in topic_ids:
        topic = begun.pop(topic_id, None)
        if topic is not None:
            deleting[topic_id] = topic
    if deleting != group.deleting:
        _write(turn, group, begun, deleting)
    return list(deleting.values())


def note_deleted(turn: Turn, group: ShareGroup, topic_ids: Iterable[UUID]) -> None:
    """Record that the state of these topics is deleted."""
    gone = set(topic_ids)
    deleting = {each: topic for each, topic in group.deleting.items() if each not in gone}
    if deleting != group.deleting:
        _write(turn, group, group.begun, deleting)


def _write(
    turn: Turn,
    group: ShareGroup,
    begun: dict[UUID, TopicState],
    deleting: dict[UUID, TopicState],
) -> None:
    record = ShareStateRecord(group.group_id, tuple(begun.values()), tuple(deleting.values()))
    change(turn, group, record)
