"""Ranges for tasks, of one topic or several, by the bytes that the brokers' logs of them take."""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.lake.loads.boundaries import Limits
from ottla.lake.plan import ranges
from ottla.lake.sizes import log_bytes
from ottla.lake.source import TopicDescription
from ottla.lake.splitting import JOIN_BYTES, split
from ottla.lake.stream.options import SourceOptions
from ottla.lake.stream.reading import PlannedRange, RangePartition, partitions_of, planned_ranges

# One range reads so many offsets at most, whatever its bytes.
_OFFSETS_PER_TASK = 2_000_000


class TopicRead(NamedTuple):
    """What is to be read of a topic."""

    described: TopicDescription
    limits: Limits


def divided(reads: Sequence[TopicRead], options: SourceOptions) -> list[RangePartition]:
    """Tasks for all that is to be read. Small ranges share one, unless options count offsets."""
    cut = [
        ranges(
            described.topic,
            limits.starts,
            limits.ends,
            offsets_max=options.offsets_per_task or _OFFSETS_PER_TASK,
            tasks_min=1,
            topic_id=described.topic_id,
        )
        for described, limits in reads
    ]
    named = [read.described.topic for read, pieces in zip(reads, cut, strict=True) if pieces]
    sizes = log_bytes(options.bootstrap, named, options.access) if named else {}
    planned: list[PlannedRange] = []
    for (described, limits), pieces in zip(reads, cut, strict=True):
        sized = split(
            pieces,
            described.bounds,
            sizes.get(described.topic, {}),
            split_bytes=options.bytes_per_task,
        )
        planned += planned_ranges(sized, described.compacted, limits.gone_below)
    return partitions_of(planned, JOIN_BYTES if options.offsets_per_task is None else -1)
