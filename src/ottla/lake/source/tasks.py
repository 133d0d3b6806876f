"""Plans the data source's tasks by the size of the brokers' logs, and reads their ranges."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.plan import (
    JOIN_BYTES,
    Range,
    joined,
    loss_lines,
    losses,
    ranges,
    require_no_loss,
    split,
)
from ottla.lake.model.schema import SOURCE_COLUMNS, numbers
from ottla.lake.source.backlog import log_bytes
from ottla.lake.source.boundaries import Limits, assigned, boundaries, chosen, limits_of_read
from ottla.lake.source.cluster import Cluster, TopicBounds, connect
from ottla.lake.source.held_back import held_back_in
from ottla.lake.source.ledgers import judged, skipped_lines
from ottla.lake.source.narrowing import Narrowing
from ottla.lake.source.reader import read_range
from ottla.lake.source.source_options import StreamOptions
from ottla.lake.tables.opening import existing_table
from ottla.ledger.partition import PartitionLedger, RangeAccount

_log = logging.getLogger(__name__)

# The most offsets of one range, whatever its size in bytes.
_OFFSETS_PER_TASK = 2_000_000
_LOSS = 'Read on without them: .option("failOnDataLoss", "false")'


@dataclass(frozen=True, slots=True)
class PlannedRange:
    """A range, and what its ledger needs to know about the topic."""

    wanted: Range
    compacted: bool
    gone_below: int  # Records deleted below this offset are not a loss.


# The ranges that one task reads.
TaskRanges = tuple[PlannedRange, ...]


class TopicRead(NamedTuple):
    """A topic and the limits within which it is read."""

    described: TopicBounds
    limits: Limits


def planned_tasks(options: StreamOptions, narrowing: Narrowing) -> list[TaskRanges]:
    """Return the tasks of a query with these options, whose ranges `narrowing` limits.

    Raises OttlaError if records were deleted, unless the options accept that.
    """
    planned: list[TopicRead] = []
    positions = last_load(options)
    with closing(connect(options.brokers)) as cluster:
        names = chosen(options, cluster.topic_names() if options.topic_pattern else ())
        starts, ends = boundaries(options.start, names), boundaries(options.end, names)
        for name in names:
            found = cluster.describe(name)
            described = replace(found, bounds=assigned(name, found.bounds, options))
            since_ms = narrowing.since_ms
            since = {} if since_ms is None else cluster.offsets_at(name, since_ms)
            narrow = partial(narrowing.narrowed, name, since=since)
            limits = limits_of_read(cluster, described, starts[name], ends[name], positions, narrow)
            planned.append(TopicRead(described, limits))
            for line in held_back_in(cluster, options.brokers, described, limits.ends):
                _log.warning("%s", line)
    for described, limits in planned:
        judge_loss(described.topic, limits.lost, options)
    return divided(planned, options)


def last_load(options: StreamOptions) -> Mapping[int, int]:
    """Return the positions that the last load left in the table named in the options."""
    if options.table is None:
        return {}
    manifest, _ = existing_table(options.table).latest()
    return manifest.positions if manifest else {}


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
            topic_id=described.topic_id,
        )
        for described, limits in reads
    ]
    named = [read.described.topic for read, pieces in zip(reads, cut, strict=True) if pieces]
    log_sizes = log_bytes(options.brokers, named)
    planned: list[PlannedRange] = []
    sizes: list[int] = []
    for (described, limits), pieces in zip(reads, cut, strict=True):
        sized = split(
            pieces,
            described.bounds,
            log_sizes.get(described.topic, {}),
            split_bytes=options.bytes_per_task,
        )
        for one in sized:
            gone_below = limits.gone_below[one.wanted.partition]
            planned.append(PlannedRange(one.wanted, described.compacted, gone_below))
            sizes.append(one.size_bytes)
    groups = joined(sizes, -1 if is_counted else JOIN_BYTES)
    return [tuple(planned[place] for place in group) for group in groups]


def read_task(ranges: TaskRanges, options: StreamOptions) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task's ranges. Raises OttlaError if an offset is unexplained."""
    if not ranges:
        return
    with closing(connect(options.brokers)) as cluster:
        for planned in ranges:
            yield from _read(planned, cluster, options)


def _read(
    planned: PlannedRange, cluster: Cluster, options: StreamOptions
) -> Iterator[pa.RecordBatch]:
    wanted = planned.wanted
    account = RangeAccount(wanted.partition, wanted.start, wanted.end, planned.compacted)
    for batch in read_range(
        wanted,
        cluster,
        account,
        skip_unreadable=options.skip_unreadable,
        null_bad_timestamps=options.null_bad_timestamps,
    ):
        yield _as_source(batch, options.columns)
    (ledger,) = judged([account.ledger_with_gaps()], cluster, wanted.topic)
    for line in skipped_lines(wanted.topic, account.skipped):
        _log.warning("%s", line)
    judge_loss(wanted.topic, losses([ledger], {wanted.partition: planned.gone_below}), options)
    if not ledger.balances:
        raise OttlaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"{ledger.unexplained} offsets of {wanted} are unexplained: "
            f"{ledger}; look at the log with `ottla log dump`",
        )


def _as_source(rows: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """Return the columns as in Spark's own connector, where a record without headers has null."""
    columns = [rows.column(SOURCE_COLUMNS[name].in_row) for name in names]
    if "headers" in names:
        headers = columns[names.index("headers")]
        # Scalars that Arrow makes of Python's values would import pandas; see `numbers`.
        zero, nothing = numbers(np.zeros(1, np.int32), pa.int32())[0], pa.nulls(1, headers.type)[0]
        is_empty = pc.equal(pc.list_value_length(headers), zero)
        columns[names.index("headers")] = pc.if_else(is_empty, nothing, headers)
    return pa.RecordBatch.from_arrays(columns, names=list(names))


def judge_loss(topic: str, found: Mapping[PartitionLedger, int], options: StreamOptions) -> None:
    """Raise OttlaError if offsets were lost, or log the loss if the options accept it."""
    if options.fail_on_data_loss:
        require_no_loss(topic, found, _LOSS)
    for line in loss_lines(topic, found):
        _log.warning("%s", line)
