"""Names and numbers that identify things, kept apart by type."""

from collections.abc import Iterable
from typing import NamedTuple, NewType, cast
from uuid import UUID

BrokerId = NewType("BrokerId", int)
ProducerId = NewType("ProducerId", int)
TopicId = NewType("TopicId", UUID)

# Sent on the wire if no topic id is known.
NO_TOPIC_ID = TopicId(UUID(int=0))
NO_PRODUCER_ID = ProducerId(-1)
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1


class TopicPartition(NamedTuple):
    """A partition of a topic; prints as Kafka names its folder (`flights-0`)."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


# Hot: several times for each partition of an image.
def broker_ids(ids: Iterable[int]) -> tuple[BrokerId, ...]:
    """Return the numbers as broker ids."""
    return cast("tuple[BrokerId, ...]", tuple(ids))


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the numbers of each topic's partitions, in the given order."""
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    return topics
