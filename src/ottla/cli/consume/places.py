"""Resolves a position in a log, such as `--from -10`, to an offset in each partition."""

from collections.abc import Iterable

from ottla.base.ids import TopicPartition
from ottla.cli.text.words import Position
from ottla.client.connection.cluster import Cluster
from ottla.client.consumer.offsets import EARLIEST, LATEST
from ottla.diagnosis.offsets import Offsets, offsets_at


async def resolved(
    cluster: Cluster, partitions: Iterable[TopicPartition], position: Position
) -> Offsets:
    """The offset of `position` in each partition, limited to the log's bounds."""
    partitions = list(partitions)
    starts = await offsets_at(cluster, partitions, EARLIEST)
    if position.kind == "earliest":
        return starts
    ends = await offsets_at(cluster, partitions, LATEST)
    if position.kind == "latest":
        return ends
    if position.kind == "time":
        found = await offsets_at(cluster, partitions, position.number)
        return {place: offset if offset >= 0 else ends[place] for place, offset in found.items()}
    if position.kind == "last":
        return {place: max(starts[place], ends[place] - position.number) for place in partitions}
    return {place: min(max(starts[place], position.number), ends[place]) for place in partitions}
