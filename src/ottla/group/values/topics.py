"""Topics, their partitions, and the sets of partitions that are assigned to members."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar
from uuid import UUID

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class AssignedSlot(NamedTuple):
    """A partition, by topic id: a topic that is deleted and recreated has other partitions."""

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
    """Makes the element of a message for one topic."""

    def __call__(self, *, topic_id: UUID, partitions: list[int]) -> T_co: ...


def share_of(topics: Iterable[TopicPartitions]) -> Share:
    """Convert a message's list of topics to a set of partitions."""
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
    """Convert a set of partitions to a message's list of topics; `entry` makes each element."""
    return [
        entry(topic_id=topic_id, partitions=list(partitions))
        for topic_id, partitions in by_topic(share).items()
    ]


class TopicShape(NamedTuple):
    """A topic's identity and size."""

    name: str
    id: UUID
    partitions: int


class TopicsView(Protocol):
    """All topics at one moment."""

    # A token: another object if any topic may have changed.
    token: object

    def find(self, name: str) -> TopicShape | None:
        """The topic of that name, if it exists."""
        ...

    def name_of(self, topic_id: UUID) -> str | None:
        """The topic's name, None once it is deleted."""
        ...

    def names(self) -> Iterable[str]:
        """The names of all topics."""
        ...


class _NoTopics:
    """A view without topics."""

    token: object = None

    def find(self, _name: str) -> TopicShape | None:
        return None

    def name_of(self, _topic_id: UUID) -> str | None:
        return None

    def names(self) -> Iterable[str]:
        return ()


NO_TOPICS: TopicsView = _NoTopics()


class NamedEntry(Protocol[T_co]):
    """Makes the element of a message for one topic, with its id and name."""

    def __call__(self, *, topic_id: UUID, topic_name: str, partitions: list[int]) -> T_co: ...


def named_topics(
    share: Iterable[AssignedSlot], topics: TopicsView, entry: NamedEntry[T]
) -> list[T]:
    """Like `topics_of`, with topic names, and without deleted topics, which have no name."""
    named = [
        (topic_id, topics.name_of(topic_id), partitions)
        for topic_id, partitions in by_topic(share).items()
    ]
    return [
        entry(topic_id=topic_id, topic_name=name, partitions=list(partitions))
        for topic_id, name, partitions in named
        if name is not None
    ]


def shape_hash(shapes: Iterable[TopicShape]) -> int:
    """A number of 63 bits that differs if topics, their ids or their sizes differ; 0 for none.

    It is written with a group's epoch, so that the next coordinator of the group knows
    whether anything has changed since.
    """
    ordered = sorted(shapes)
    if not ordered:
        return 0
    text = "\n".join(f"{name} {topic_id} {count}" for name, topic_id, count in ordered)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


class Sight(Protocol):
    """The topics that a member's client may see at one moment.

    Equal sights show the same topics.
    """

    def __call__(self, topic: str, /) -> bool:
        """Whether it may see the topic."""
        ...


def sees_all(_topic: str) -> bool:
    """The sight of clients that are not checked."""
    return True
