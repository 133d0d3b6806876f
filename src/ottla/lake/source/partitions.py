"""Divides reads of one or several topics into tasks, by the size of the brokers' logs."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from ottla.lake.model.plan import Boundary, ranges
from ottla.lake.model.splitting import JOIN_BYTES, split
from ottla.lake.source.boundaries import Limits, limits_of_read
from ottla.lake.source.cluster import connect
from ottla.lake.source.held_back import held_back_in
from ottla.lake.source.narrowing import Narrowing
from ottla.lake.source.partition_reader import (
    PlannedRange,
    TaskRanges,
    judge_loss,
    planned_ranges,
    tasks_of,
)
from ottla.lake.source.sizes import log_bytes
from ottla.lake.source.source import Cluster, TopicDescription
from ottla.lake.source.source_options import StreamOptions
from ottla.lake.source.topics import assigned, boundaries, chosen
from ottla.lake.tables.opening import existing_table

_log = logging.getLogger(__name__)

# The most offsets of one range, whatever its size in bytes.
_OFFSETS_PER_TASK = 2_000_000


class TopicRead(NamedTuple):
    """The part of a topic to read."""

    described: TopicDescription
    limits: Limits


def divided(reads: Sequence[TopicRead], options: StreamOptions) -> list[TaskRanges]:
    """Return tasks for all reads. Small ranges share a task, unless the options set a number."""
    is_counted = options.offsets_per_task is not None or options.tasks_min is not None
    offsets_max = options.offsets_per_task or _OFFSETS_PER_TASK
    if options.tasks_min is not None:
        total = sum(sum(r.limits.ends.values()) - sum(r.limits.starts.values()) for r in reads)
        offsets_max = max(1, min(offsets_max, total // options.tasks_min))
    cut = [
        ranges(
            described.topic,
            limits.starts,
            limits.ends,
            offsets_max=offsets_max,
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
    return tasks_of(planned, -1 if is_counted else JOIN_BYTES)


def planned_tasks(options: StreamOptions, narrowing: Narrowing) -> list[TaskRanges]:
    """Return tasks for a read with these options, within what `narrowing` leaves of it.

    Raises OttlaError if records were deleted, unless the options accept that.
    """
    planned: list[TopicRead] = []
    positions = last_load(options)
    with closing(connect(options.bootstrap, access=options.access)) as cluster:
        names = chosen(options, cluster.topic_names() if options.topic_pattern else ())
        starts, ends = boundaries(options.start, names), boundaries(options.end, names)
        for name in names:
            found = cluster.describe(name)
            described = replace(found, bounds=assigned(name, found.bounds, options))
            limits = _limits(cluster, described, starts[name], ends[name], positions, narrowing)
            planned.append(TopicRead(described, limits))
            for line in held_back_in(
                cluster, options.bootstrap, described, limits.ends, options.access
            ):
                _log.warning("%s", line)
    for described, limits in planned:
        judge_loss(described.topic, limits.lost, options)
    return divided(planned, options)


def _limits(
    cluster: Cluster,
    described: TopicDescription,
    start: Boundary,
    end: Boundary,
    positions: Mapping[int, int],
    narrowing: Narrowing,
) -> Limits:
    since_ms = narrowing.since_ms
    since = {} if since_ms is None else cluster.offsets_at(described.topic, since_ms)
    narrow = partial(narrowing.narrowed, described.topic, since=since)
    return limits_of_read(cluster, described, start, end, positions, narrow)


def last_load(options: StreamOptions) -> Mapping[int, int]:
    """Return the positions that the last load left in the table named in the options."""
    if options.table is None:
        return {}
    manifest, _ = existing_table(options.table).latest()
    return manifest.positions if manifest else {}
