"""Plans the deletion of topics: replicas to stop, replicas to wait for, and completion.

Only the topic's deletion mark in the store must survive a change of the controller: the next one
asks every broker again, and brokers confirm again the replicas that they have deleted already.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ottla.base.ids import BrokerId
from ottla.metadata.image import TopicImage

# A partition's number, and the broker that hosts a replica of it.
Replica = tuple[int, BrokerId]


@dataclass(frozen=True, slots=True)
class DeletionPlan:
    """The progress of the deletion of one topic."""

    # Partitions to delete now, by live broker.
    asked: Mapping[BrokerId, tuple[int, ...]]
    # Dead brokers that host replicas: the deletion waits for their return.
    awaited: tuple[BrokerId, ...]

    @property
    def is_done(self) -> bool:
        """Whether no replica is left, so that the topic can be removed from the store."""
        return not self.asked and not self.awaited


def plan_deletion(
    topic: TopicImage, live: Collection[BrokerId], deleted: Collection[Replica]
) -> DeletionPlan:
    """Plan the rest of a deletion; brokers have confirmed the replicas in `deleted`."""
    asked: dict[BrokerId, list[int]] = {}
    awaited: list[BrokerId] = []
    for index, partition in enumerate(topic.partitions):
        for broker in partition.replicas:
            if (index, broker) in deleted:
                continue
            if broker in live:
                asked.setdefault(broker, []).append(index)
            elif broker not in awaited:
                awaited.append(broker)
    return DeletionPlan(
        {broker: tuple(indexes) for broker, indexes in asked.items()}, tuple(awaited)
    )
