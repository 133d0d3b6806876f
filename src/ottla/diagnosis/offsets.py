"""The partitions of a topic, and offsets in their logs by name or by time."""

from collections.abc import Iterable

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.client.connection.cluster import Cluster, connections_of
from ottla.client.connection.view import NO_LEADER
from ottla.client.consumer.offsets import list_offsets

Offsets = dict[TopicPartition, int]


async def partitions_of(
    cluster: Cluster, topic: str, chosen: Iterable[int] = ()
) -> list[TopicPartition]:
    """The partitions of the topic, or those `chosen`.

    Raises UnknownTopic, and UNKNOWN_TOPIC_OR_PARTITION for a number the topic does not have.
    """
    view = await cluster.topic(topic)
    count = len(view.partitions)
    wanted = sorted(set(chosen)) or range(count)
    for index in wanted:
        if index >= count:
            raise OttlaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {topic!r} has partitions 0 to {count - 1}, not {index}",
            )
    return [TopicPartition(topic, index) for index in wanted]


async def offsets_at(cluster: Cluster, partitions: Iterable[TopicPartition], at: int) -> Offsets:
    """Offsets by name (EARLIEST, LATEST) or time in ms; -1 if all records are older."""
    found = await list_offsets(cluster, dict.fromkeys(partitions, at))
    return {partition: entry.offset for partition, entry in found.items()}


async def known_offsets(admin: Admin, places: Iterable[TopicPartition], at: int) -> Offsets:
    """As `offsets_at`, without partitions that do not exist or have no leader."""
    views = {view.name: view for view in await admin.topics.all(internal=True)}
    there = [
        place
        for place in places
        if place.topic in views
        and place.partition < len(views[place.topic].partitions)
        and views[place.topic].partitions[place.partition].leader != NO_LEADER
    ]
    return await offsets_at(connections_of(admin), there, at) if there else {}
