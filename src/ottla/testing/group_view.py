"""A group of any type as its coordinator sees it: members, partitions, positions.

To be used on the broker's event loop.
"""

from dataclasses import dataclass
from typing import NamedTuple

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicId, TopicPartition
from ottla.broker.groups.shard import GroupShard
from ottla.broker.partitions.partition import Partition
from ottla.broker.process.parts import Parts
from ottla.broker.share.portion import read_portion
from ottla.broker.share.states import key_text
from ottla.group.model.consumer_group import AWAY, ConsumerGroup
from ottla.group.model.group import Group, GroupState
from ottla.group.model.share_group import ShareGroup
from ottla.group.records.consumer import MemberState
from ottla.group.values.member import assigned_partitions
from ottla.group.values.topics import Share
from ottla.share.records import UNKNOWN, ShareKey

# How much of a log is read at a time in the search for a record that a group has not read.
_PROBE_BYTES = 4096


class ViewedMember(NamedTuple):
    """A member and its partitions; `lacks` is what it has yet to do, None for nothing."""

    client_id: str
    host: str
    partitions: frozenset[TopicPartition]
    lacks: str | None = None


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group: its members by id, and its committed offsets (share groups: start offsets).

    If `is_settled`, each member has got the assignment of the latest rebalance.
    """

    group_id: str
    state: str
    is_settled: bool
    members: dict[str, ViewedMember]
    positions: dict[TopicPartition, int]
    is_share: bool = False

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions that are assigned to a member."""
        return frozenset().union(*(each.partitions for each in self.members.values()))


def shard_of(parts: Parts, group_id: str) -> GroupShard | None:
    """Return the shard of a group; None if there is none yet, or it is still loading."""
    try:
        shard = parts.groups.find(group_id, "group")
        shard.loaded()
    except OttlaError:
        return None
    return shard


def view(parts: Parts, group_id: str) -> GroupView | None:
    """Return the present state of a group; None if it does not exist."""
    shard = shard_of(parts, group_id)
    if shard is None:
        return None
    registry = shard.loaded().registry
    share = registry.share.groups.get(group_id)
    if share is not None:
        return _share(parts, share)
    group = registry.any(group_id)
    if isinstance(group, ConsumerGroup):
        return _consumer(parts, group)
    return None if group is None else _classic(group)


def all_groups(parts: Parts) -> list[GroupView]:
    """Return the present state of every group."""
    found = []
    for shard in parts.groups.shards():
        if shard.coordinator is not None:
            for listing in shard.coordinator.list_groups((), ()):
                one = view(parts, listing.group_id)
                if one is not None:
                    found.append(one)
    return found


def has_unread(partition: Partition, position: int | None) -> bool:
    """Return whether the log has a record at or after `position`, None being its start.

    Control records and aborted records do not count; records of open transactions do.
    """
    offset = max(partition.log_start_offset, position or 0)
    while offset < partition.last_stable_offset:
        found = read_portion(partition, offset, _PROBE_BYTES, committed=True).found
        if any(batch.readable and batch.last >= offset for batch in found):
            return True
        if not found:
            break
        offset = found[-1].last + 1
    return offset < partition.log_end_offset


def _classic(group: Group) -> GroupView:
    members = {}
    for member_id, member in group.members.items():
        lacks = None
        if group.state is GroupState.PREPARING_REBALANCE and member.joining is None:
            lacks = "has not joined again"
        elif member_id in group.pending_syncs:
            lacks = "has not asked for its assignment"
        members[member_id] = ViewedMember(
            member.client_id,
            member.client_host,
            assigned_partitions(member.assignment) or frozenset(),
            lacks,
        )
    settled = group.state is GroupState.STABLE and not group.pending_syncs
    return GroupView(group.group_id, group.state.value, settled, members, _committed(group))


def _consumer(parts: Parts, group: ConsumerGroup) -> GroupView:
    members = {}
    for member_id, member in group.members.items():
        current = group.current.get(member_id)
        lacks = None
        if current is None or current.epoch not in (group.target_epoch, AWAY):
            lacks = f"has not reached epoch {group.target_epoch}"
        elif current.state is not MemberState.STABLE:
            lacks = "has to revoke partitions, or waits for those of another member"
        held = frozenset() if current is None else _named(parts, current.assigned)
        members[member_id] = ViewedMember(member.client_id, member.client_host, held, lacks)
    settled = (
        bool(members)
        and group.epoch == group.target_epoch
        and not any(each.lacks for each in members.values())
    )
    return GroupView(group.group_id, group.state.value, settled, members, _committed(group))


def _share(parts: Parts, group: ShareGroup) -> GroupView:
    members = {}
    for member_id, member in group.members.items():
        current = group.current.get(member_id)
        lacks = None
        if current is None or current.epoch != group.epoch:
            lacks = f"has not reached epoch {group.epoch}"
        held = frozenset() if current is None else _named(parts, current.assigned)
        members[member_id] = ViewedMember(member.client_id, member.client_host, held, lacks)
    settled = bool(members) and not any(each.lacks for each in members.values())
    positions = {}
    for topic in group.begun.values():
        for index in topic.partitions:
            start = _share_start(parts, ShareKey(group.group_id, topic.id, index))
            if start is not None:
                positions[TopicPartition(topic.name, index)] = start
    return GroupView(group.group_id, group.state.value, settled, members, positions, is_share=True)


def _share_start(parts: Parts, key: ShareKey) -> int | None:
    """Return the start offset of a share partition as it is stored; None if it has none yet."""
    try:
        shard = parts.share.states.find(key_text(key), "share partition")
        state = shard.loaded().states.get(key)
    except OttlaError:
        return None
    is_stored = shard.partition.high_watermark == shard.partition.log_end_offset
    return state.start_offset if state and is_stored and state.start_offset != UNKNOWN else None


def _committed(group: Group | ConsumerGroup) -> dict[TopicPartition, int]:
    return {name: committed.offset for name, committed in group.offsets.items()}


def _named(parts: Parts, share: Share) -> frozenset[TopicPartition]:
    image = parts.cluster.view.image
    topics = {slot: image.topic_by_id(TopicId(slot.topic_id)) for slot in share}
    return frozenset(
        TopicPartition(topic.name, slot.partition) for slot, topic in topics.items() if topic
    )
