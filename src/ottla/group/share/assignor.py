"""The share group assignor "simple": which member gets which partitions (KIP-932).

Unlike in a consumer group, a partition may be assigned to several members. Every partition has at
least one member, every member has at least one partition of its topics, and the numbers of members
differ as little as subscriptions allow. Pure and deterministic.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from ottla.group.consumer.assignors import Subscribers, uniform
from ottla.group.values.shares import AssignedSlot, Share

NAME = "simple"


def simple(members: Subscribers, partition_counts: Mapping[UUID, int]) -> dict[str, Share]:
    """The partitions of each member.

    First each partition is assigned to one member; then each member without a partition is assigned
    one that has the fewest members.
    """
    return _joined(members, uniform(members, partition_counts), partition_counts)


def _joined(
    members: Subscribers, shares: Mapping[str, Share], partition_counts: Mapping[UUID, int]
) -> dict[str, Share]:
    loads: dict[AssignedSlot, int] = {}
    for share in shares.values():
        for slot in share:
            loads[slot] = loads.get(slot, 0) + 1
    full = dict(shares)
    for member_id in sorted(members):
        if full[member_id]:
            continue
        readable = _readable(members[member_id].topics, partition_counts)
        if readable:
            before = members[member_id].share
            slot = min(readable, key=lambda each: (loads.get(each, 0), each not in before, each))
            loads[slot] = loads.get(slot, 0) + 1
            full[member_id] = frozenset((slot,))
    return full


def _readable(
    topics: frozenset[UUID], partition_counts: Mapping[UUID, int]
) -> Sequence[AssignedSlot]:
    return [
        AssignedSlot(topic_id, index)
        for topic_id in topics
        for index in range(partition_counts.get(topic_id, 0))
    ]
