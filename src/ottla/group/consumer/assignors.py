"""Who shall have which partitions: the assignors a coordinator offers (KIP-848).

Pure functions of the members, what each has now, and how many partitions the topics have. Equal
input gives equal output, whatever the order of dictionaries.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from ottla.group.consumer.shares import NOTHING, Share, Slot


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A member as an assignor sees it. `topics` exist; `share` is its last target."""

    topics: frozenset[UUID]
    instance_id: str | None = None
    share: Share = NOTHING


Subscribers = Mapping[str, Subscriber]
Assign = Callable[[Subscribers, Mapping[UUID, int]], dict[str, Share]]


def uniform(members: Subscribers, partition_counts: Mapping[UUID, int]) -> dict[str, Share]:
    """Shares that differ by one partition at most, where subscriptions allow; few moves.

    A member keeps what it has as far as it is not too much.
    """
    order = sorted(members)
    shares = {member_id: _kept(members[member_id], partition_counts) for member_id in order}
    _drop_doubles(order, shares)
    taken = {slot for share in shares.values() for slot in share}
    readers = _readers(order, members)
    free = [
        Slot(topic_id, index)
        for topic_id in sorted(readers)
        for index in range(partition_counts[topic_id])
        if Slot(topic_id, index) not in taken
    ]
    # Those with the fewest possible readers first: who comes later can still choose.
    free.sort(key=lambda slot: len(readers[slot.topic_id]))
    for slot in free:
        _least_loaded(readers[slot.topic_id], shares).add(slot)
    _level(readers, shares)
    return {member_id: frozenset(share) for member_id, share in shares.items()}


def by_range(members: Subscribers, partition_counts: Mapping[UUID, int]) -> dict[str, Share]:
    """Each topic's partitions in runs, by the order of instance ids and member ids.

    Members that read the same topics get the same numbers of each: topics can be joined.
    """
    order = sorted(members, key=lambda member_id: members[member_id].instance_id or member_id)
    shares: dict[str, set[Slot]] = {member_id: set() for member_id in members}
    for topic_id, readers in _readers(order, members).items():
        each, more = divmod(partition_counts[topic_id], len(readers))
        start = 0
        for place, member_id in enumerate(readers):
            end = start + each + (place < more)
            shares[member_id].update(Slot(topic_id, index) for index in range(start, end))
            start = end
    return {member_id: frozenset(share) for member_id, share in shares.items()}


# By the names clients ask for, Kafka's.
ASSIGNORS: Mapping[str, Assign] = {"uniform": uniform, "range": by_range}


def _kept(member: Subscriber, partition_counts: Mapping[UUID, int]) -> set[Slot]:
    return {
        slot
        for slot in member.share
        if slot.topic_id in member.topics and slot.partition < partition_counts[slot.topic_id]
    }


def _drop_doubles(order: Sequence[str], shares: dict[str, set[Slot]]) -> None:
    """A partition that two have (a static member and who took its place) stays with the first."""
    seen: set[Slot] = set()
    for member_id in order:
        shares[member_id] -= seen
        seen |= shares[member_id]


def _readers(order: Sequence[str], members: Subscribers) -> dict[UUID, list[str]]:
    readers: dict[UUID, list[str]] = {}
    for member_id in order:
        for topic_id in members[member_id].topics:
            readers.setdefault(topic_id, []).append(member_id)
    return readers


def _least_loaded(readers: Sequence[str], shares: dict[str, set[Slot]]) -> set[Slot]:
    return shares[min(readers, key=lambda member_id: len(shares[member_id]))]


def _level(readers: Mapping[UUID, Sequence[str]], shares: dict[str, set[Slot]]) -> None:
    """Move partitions from who has most to who has least, while that helps.

    Each move makes the sum of squares of the loads smaller, so it ends.
    """
    moved = True
    while moved:
        moved = False
        for giver in sorted(shares, key=lambda member_id: (-len(shares[member_id]), member_id)):
            for slot in sorted(shares[giver], reverse=True):
                taker = _least_loaded(readers[slot.topic_id], shares)
                if len(shares[giver]) > len(taker) + 1:
                    shares[giver].remove(slot)
                    taker.add(slot)
                    moved = True
