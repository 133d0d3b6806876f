"""Rows that come behind the watermark: found, counted, and refused where the policy says so."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.quantities import iso
from ottla.lake.decode.rows import SortedRows
from ottla.lake.events.buckets import micros_of
from ottla.lake.events.times import TIMESTAMP, EventRule

LATE_STAGE = "late"


@dataclass(slots=True)
class SeenTimes:
    """What a task saw of event times: the highest one that is not in the future, and late rows."""

    highest_ms: int | None = None
    late: int = 0


def event_column(rows: SortedRows, rule: EventRule, names: Sequence[str]) -> Any:
    """The event times of the rows that are kept; `names` are those of the typed columns."""
    if rule.column == TIMESTAMP:
        return rows.kept.column(TIMESTAMP)
    return rows.typed[names.index(rule.column)]


def without_late(
    rows: SortedRows, rule: EventRule, names: Sequence[str], seen: SeenTimes
) -> SortedRows:
    """Count late rows in `seen`, and move them to the dead letters where the rule says so.

    Raises OttlaError for the first late row where that is the policy.
    """
    micros = micros_of(event_column(rows, rule, names))
    if micros.null_count == len(micros):
        return rows
    known = np.asarray(micros.drop_null())
    times = known[known <= rule.clock_ms * 1000]
    if len(times):
        highest = int(times.max()) // 1000
        seen.highest_ms = max(highest, highest if seen.highest_ms is None else seen.highest_ms)
    if rule.watermark_ms is None or known.min() >= rule.watermark_ms * 1000:
        return rows
    is_late = np.asarray(micros.fill_null(1 << 62)) < rule.watermark_ms * 1000
    seen.late += int(is_late.sum())
    if rule.late_rows == "keep":
        return rows
    if rule.late_rows == "fail":
        at = int(np.flatnonzero(is_late)[0])
        raise _refused(rows.kept, at, micros[at].as_py() // 1000, rule.watermark_ms)
    return _moved(rows, is_late, micros, rule.watermark_ms)


def _moved(rows: SortedRows, is_late: Any, micros: Any, watermark_ms: int) -> SortedRows:
    late, rest = pa.array(np.flatnonzero(is_late)), pa.array(np.flatnonzero(~is_late))
    dead = rows.kept.take(late)
    errors = [_words(time.as_py() // 1000, watermark_ms) for time in micros.take(late)]
    times = dead.column("timestamp").cast(pa.int64())
    millis = [None if time is None else time // 1000 for time in times.to_pylist()]
    reasons: Sequence[Any] = (
        pa.array([LATE_STAGE] * len(dead), pa.string()),
        pa.array(errors, pa.string()),
        pa.nulls(len(dead), pa.int64()),
        pa.array(millis, pa.int64()),
    )
    if rows.dead.num_rows:
        dead = pa.Table.from_batches([rows.dead, dead]).combine_chunks()
        reasons = [
            pa.concat_arrays([one, other]) for one, other in zip(rows.reasons, reasons, strict=True)
        ]
        order = pc.sort_indices(dead.column("offset"))
        (dead,) = dead.take(order).combine_chunks().to_batches()
        reasons = [one.take(order) for one in reasons]
    return SortedRows(rows.kept.take(rest), [one.take(rest) for one in rows.typed], dead, reasons)


def _words(time_ms: int, watermark_ms: int) -> str:
    return (
        f"its event time {iso(time_ms)} lies before {iso(watermark_ms)}, up to which the table was "
        "complete"
    )


def _refused(rows: pa.RecordBatch, at: int, time_ms: int, watermark_ms: int) -> OttlaError:
    topic, partition, offset = (
        rows.column(name)[at].as_py() for name in ("topic", "partition", "offset")
    )
    return OttlaError(
        ErrorCode.INVALID_TIMESTAMP,
        f"{topic}-{partition} offset {offset} is late: {_words(time_ms, watermark_ms)}. Keep late "
        "rows (--late-rows keep), make dead letters of them (--late-rows dead-letter), or allow "
        "more lateness (--allowed-lateness)",
    )
