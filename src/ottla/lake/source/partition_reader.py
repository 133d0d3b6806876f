"""Reads ranges of offsets in a task of the data source, and checks the ledger of each."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.loss import loss_lines, losses, require_no_loss
from ottla.lake.model.plan import Range
from ottla.lake.model.schema import SOURCE_COLUMNS
from ottla.lake.model.splitting import JOIN_BYTES, SizedRange, joined
from ottla.lake.source.cluster import connect
from ottla.lake.source.committed_positions import skipped_lines
from ottla.lake.source.evidence import judged
from ottla.lake.source.reader import read_range
from ottla.lake.source.source import Cluster
from ottla.lake.source.source_options import StreamOptions
from ottla.ledger.partition import PartitionLedger, RangeAccount

_log = logging.getLogger(__name__)

_LOSS = 'Read on without them: .option("failOnDataLoss", "false")'


@dataclass(frozen=True, slots=True)
class PlannedRange:
    """A range, and the facts about the topic that its ledger needs."""

    wanted: Range
    compacted: bool
    gone_below: int  # Deletions below this offset are not a loss.
    log_bytes: int = 0  # Approximate size of the range in the partition's log.


# The ranges that one task reads.
TaskRanges = tuple[PlannedRange, ...]


def planned_ranges(
    ranges: Sequence[SizedRange], compacted: bool, gone_below: Mapping[int, int]
) -> list[PlannedRange]:
    """Return the ranges of one topic in the form that tasks read."""
    return [
        PlannedRange(sized.wanted, compacted, gone_below[sized.wanted.partition], sized.size_bytes)
        for sized in ranges
    ]


def tasks_of(planned: Sequence[PlannedRange], join_bytes: int = JOIN_BYTES) -> list[TaskRanges]:
    """Return tasks for the ranges; small ranges share a task."""
    groups = joined([one.log_bytes for one in planned], join_bytes)
    return [tuple(planned[place] for place in group) for group in groups]


def read_task(ranges: TaskRanges, options: StreamOptions) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task's ranges. Raises OttlaError where an offset is unexplained."""
    if not ranges:
        return
    cluster = connect(options.bootstrap, access=options.access)
    try:
        for planned in ranges:
            yield from _read(planned, cluster, options)
    finally:
        cluster.close()


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
    """Return the columns as Spark's own connector has them: without headers they are null."""
    columns = [rows.column(SOURCE_COLUMNS[name].in_row) for name in names]
    if "headers" in names:
        headers = columns[names.index("headers")]
        is_empty = pc.equal(pc.list_value_length(headers), 0)
        nothing = pa.scalar(None, headers.type)
        columns[names.index("headers")] = pc.if_else(is_empty, nothing, headers)
    return pa.RecordBatch.from_arrays(columns, names=list(names))


def judge_loss(topic: str, found: Mapping[PartitionLedger, int], options: StreamOptions) -> None:
    """Raise OttlaError if offsets were lost, or log the loss if the options say so."""
    if options.fail_on_data_loss:
        require_no_loss(topic, found, _LOSS)
    for line in loss_lines(topic, found):
        _log.warning("%s", line)
