"""Sets of partitions, as members have and get them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar
from uuid import UUID

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class AssignedSlot(NamedTuple):
    """A partition of a topic, by the topic's id: a recreated topic is another one."""

    topic_id: UUID
    partition: int


# A member's current or target assignment.
Share = frozenset[AssignedSlot]

NOTHING: Share = frozenset()


class TopicPartitions(Protocol):
    """One topic and some of its partitions, as the wire and the log write them."""

    topic_id: UUID
    partitions: list[int]


class EntryMaker(Protocol[T_co]):
    """Makes a message's entry of one topic."""

    def __call__(self, *, topic_id: UUID, partitions: list[int]) -> T_co: ...


def share_of(topics: Iterable[TopicPartitions]) -> Share:
    """The set that a message's list of topics stands for."""
    return frozenset(
        AssignedSlot(each.topic_id, partition) for each in topics for partition in each.partitions
    )


def by_topic(share: Iterable[AssignedSlot]) -> Mapping[UUID, Sequence[int]]:
    """The partitions of each topic, both in order."""
    topics: dict[UUID, list[int]] = {}
    for slot in sorted(share):
        topics.setdefault(slot.topic_id, []).append(slot.partition)
    return topics


def topics_of(share: Iterable[AssignedSlot], entry: EntryMaker[T]) -> list[T]:
    """The list of topics, each as `entry` makes it, that stands for the set in a message."""
    return [
        entry(topic_id=topic_id, partitions=list(partitions))
        for topic_id, partitions in by_topic(share).items()
    ]
