"""The assignors that a coordinator offers: which member gets which partitions (KIP-848).

Pure functions of the members, what each has now, and how many partitions the topics have. Equal
input gives equal output, in any order of dictionaries.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappush, heapreplace
from uuid import UUID

from ottla.group.values.topics import NOTHING, AssignedSlot, Share


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A member as an assignor sees it. `topics` exist; `share` is its last target."""

    topics: frozenset[UUID]
    instance_id: str | None = None
    share: Share = NOTHING


Subscribers = Mapping[str, Subscriber]
Assign = Callable[[Subscribers, Mapping[UUID, int]], dict[str, Share]]


def uniform(members: Subscribers, partition_counts: Mapping[UUID, int]) -> dict[str, Share]:
    """Assign each member about the same number of partitions, with few moves.

    The numbers differ by at most one, if subscriptions allow that. A member keeps its partitions
    unless it has too many.
    """
    order = sorted(members)
    shares = {member_id: _kept(members[member_id], partition_counts) for member_id in order}
    _drop_doubles(order, shares)
    taken = {slot for share in shares.values() for slot in share}
    readers = _readers(order, members)
    free = [
        AssignedSlot(topic_id, index)
        for topic_id in sorted(readers)
        for index in range(partition_counts[topic_id])
        if AssignedSlot(topic_id, index) not in taken
    ]
    # Partitions with the fewest possible readers first: the others leave more choice.
    free.sort(key=lambda slot: len(readers[slot.topic_id]))
    loads = _Loads(readers, shares)
    for slot in free:
        shares[loads.least(slot.topic_id)].add(slot)
    _level(readers, shares, loads)
    return {member_id: frozenset(share) for member_id, share in shares.items()}


def by_range(members: Subscribers, partition_counts: Mapping[UUID, int]) -> dict[str, Share]:
    """Assign each topic's partitions in ranges, so that topics can be joined.

    Static members come first, in order of instance id, then dynamic members, in order of member id.
    Members that read the same topics get the same partition numbers of each topic.
    """

    def place_of(member_id: str) -> tuple[bool, str]:
        instance_id = members[member_id].instance_id
        return instance_id is None, instance_id or member_id

    order = sorted(members, key=place_of)
    shares: dict[str, set[AssignedSlot]] = {member_id: set() for member_id in members}
    for topic_id, readers in _readers(order, members).items():
        each, more = divmod(partition_counts[topic_id], len(readers))
        start = 0
        for place, member_id in enumerate(readers):
            end = start + each + (place < more)
            shares[member_id].update(AssignedSlot(topic_id, index) for index in range(start, end))
            start = end
    return {member_id: frozenset(share) for member_id, share in shares.items()}


# The assignors by the names that clients request, which are Kafka's.
ASSIGNORS: Mapping[str, Assign] = {"uniform": uniform, "range": by_range}


def _kept(member: Subscriber, partition_counts: Mapping[UUID, int]) -> set[AssignedSlot]:
    return {
        slot
        for slot in member.share
        if slot.topic_id in member.topics and slot.partition < partition_counts[slot.topic_id]
    }


def _drop_doubles(order: Sequence[str], shares: dict[str, set[AssignedSlot]]) -> None:
    """If two members have a partition (a static member and its successor), the first keeps it."""
    seen: set[AssignedSlot] = set()
    for member_id in order:
        shares[member_id] -= seen
        seen |= shares[member_id]


def _readers(order: Sequence[str], members: Subscribers) -> dict[UUID, list[str]]:
    readers: dict[UUID, list[str]] = {}
    for member_id in order:
        for topic_id in members[member_id].topics:
            readers.setdefault(topic_id, []).append(member_id)
    return readers


class _Loads:
    """Finds the reader of a topic with the fewest partitions; among equals, the first by id.

    It keeps a heap for each set of readers. A member whose load has grown is moved down when the
    heap is read; a member whose load has shrunk is pushed again.
    """

    def __init__(
        self, readers: Mapping[UUID, Sequence[str]], shares: dict[str, set[AssignedSlot]]
    ) -> None:
        self._shares = shares
        self._heaps: dict[tuple[str, ...], list[tuple[int, str]]] = {}
        self._of_topic: dict[UUID, list[tuple[int, str]]] = {}
        self._of_member: dict[str, list[list[tuple[int, str]]]] = {}
        for topic_id, ids in readers.items():
            key = tuple(ids)
            heap = self._heaps.get(key)
            if heap is None:
                heap = self._heaps[key] = [(len(shares[each]), each) for each in ids]
                heapify(heap)
                for each in ids:
                    self._of_member.setdefault(each, []).append(heap)
            self._of_topic[topic_id] = heap

    def least(self, topic_id: UUID) -> str:
        """The reader of the topic with the fewest partitions."""
        heap = self._of_topic[topic_id]
        while True:
            load, member_id = heap[0]
            now = len(self._shares[member_id])
            if load == now:
                return member_id
            heapreplace(heap, (now, member_id))

    def on_less(self, member_id: str) -> None:
        """Note that the member has fewer partitions."""
        entry = (len(self._shares[member_id]), member_id)
        for heap in self._of_member[member_id]:
            heappush(heap, entry)


def _level(
    readers: Mapping[UUID, Sequence[str]], shares: dict[str, set[AssignedSlot]], loads: _Loads
) -> None:
    """Move partitions from members with more to members with fewer, while that evens the loads.

    Each move makes the sum of squares of the loads smaller, so the loop ends.
    """
    moved = bool(readers)
    while moved:
        moved = False
        for giver in sorted(shares, key=lambda member_id: (-len(shares[member_id]), member_id)):
            for slot in sorted(shares[giver], reverse=True):
                taker = loads.least(slot.topic_id)
                if len(shares[giver]) > len(shares[taker]) + 1:
                    shares[giver].remove(slot)
                    shares[taker].add(slot)
                    loads.on_less(giver)
                    moved = True


# The name of the assignor of share groups.
SIMPLE = "simple"


def simple(members: Subscribers, partition_counts: Mapping[UUID, int]) -> dict[str, Share]:
    """Assign partitions to the members of a share group.

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
