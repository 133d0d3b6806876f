"""Sums the disk usage of topics, from the brokers that have their logs."""

from collections.abc import Sequence
from dataclasses import dataclass

from ottla.client.admin import Admin


@dataclass(frozen=True, slots=True)
class TopicSize:
    """Bytes of a topic's logs: those of the leaders, and those of all replicas."""

    name: str
    partition_count: int
    leader_bytes: int
    replica_bytes: int


async def topic_sizes(admin: Admin, names: Sequence[str] | None) -> list[TopicSize]:
    """The sizes of the topics `names` (None: all), the largest first.

    Replicas on brokers that are down are not counted. Raises UnknownTopic.
    """
    views = (
        await admin.topics.all(internal=True)
        if names is None
        else await admin.topics.describe_all(names)
    )
    leaders = {(v.name, entry.index): entry.leader for v in views for entry in v.partitions}
    led, held = dict.fromkeys((v.name for v in views), 0), dict.fromkeys((v.name for v in views), 0)
    for folder in await admin.logs.directories():
        for place, size in folder.partition_bytes.items():
            if place.topic in held:
                held[place.topic] += size
                is_leader = leaders.get((place.topic, place.partition)) == folder.broker_id
                led[place.topic] += size if is_leader else 0
    found = [TopicSize(v.name, len(v.partitions), led[v.name], held[v.name]) for v in views]
    return sorted(found, key=lambda one: (-one.replica_bytes, one.name))
