"""Finds late rows, and rows whose event time no folder can be named for, and refuses them.

Engines name days of the years 1 to 9999. A record's event time may be in another year, mostly
because a producer writes other units than it should.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.quantities import iso
from ottla.lake.model.event_times import TIMESTAMP, EventRule, micros_of
from ottla.lake.rows.decoded_rows import SortedRows

LATE_STAGE = "late"
UNNAMED_STAGE = "event_time"
# The years 1 to 9999, in microseconds since 1970.
_FIRST_US, _END_US = -62_135_596_800_000_000, 253_402_300_800_000_000


@dataclass(slots=True)
class SeenTimes:
    """A task's highest event time that is not in the future, and its late rows."""

    highest_ms: int | None = None
    late: int = 0


def event_column(rows: SortedRows, rule: EventRule, names: Sequence[str]) -> Any:
    """Return event times of the kept rows; `names` are the names of the typed columns."""
    if rule.column == TIMESTAMP:
        return rows.kept.column(TIMESTAMP)
    return rows.typed[names.index(rule.column)]


def without_late(
    rows: SortedRows, rule: EventRule, names: Sequence[str], seen: SeenTimes
) -> SortedRows:
    """Count late rows in `seen`, and move them to the dead letters if the rule says so.

    Raises OttlaError for the first late row if that is the policy.
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
    watermark_ms = rule.watermark_ms
    return _moved(rows, is_late, LATE_STAGE, micros, lambda time_ms: _words(time_ms, watermark_ms))


def without_unnamed(rows: SortedRows, rule: EventRule, names: Sequence[str]) -> SortedRows:
    """Move rows to the dead letters whose event time has no named day, hour or month.

    Raises OttlaError for the first such row if late rows are not to be dead letters.
    """
    micros = micros_of(event_column(rows, rule, names))
    if rule.by == "none" or micros.null_count == len(micros):
        return rows
    known = np.asarray(micros.drop_null())
    if known.min() >= _FIRST_US and known.max() < _END_US:
        return rows
    times = np.asarray(micros.fill_null(0))
    is_unnamed = (times < _FIRST_US) | (times >= _END_US)
    if rule.late_rows != "dead-letter":
        at = int(np.flatnonzero(is_unnamed)[0])
        raise OttlaError(
            ErrorCode.INVALID_TIMESTAMP,
            f"{_place(rows.kept, at)} can't be kept apart by {rule.by}: "
            f"{_out_of_years(int(times[at]) // 1000)}. Make dead letters of such rows and of late "
            "ones (--late-rows dead-letter)",
        )
    return _moved(rows, is_unnamed, UNNAMED_STAGE, micros, _out_of_years)


def _out_of_years(time_ms: int) -> str:
    return (
        f"its event time {time_ms} ms lies outside of the years 1 to 9999; was it written in "
        "another unit?"
    )


def _moved(
    rows: SortedRows, which: Any, stage: str, micros: Any, words: Callable[[int], str]
) -> SortedRows:
    late, rest = pa.array(np.flatnonzero(which)), pa.array(np.flatnonzero(~which))
    dead = rows.kept.take(late)
    errors = [words(time.as_py() // 1000) for time in micros.take(late)]
    times = dead.column("timestamp").cast(pa.int64())
    millis = [None if time is None else time // 1000 for time in times.to_pylist()]
    reasons: Sequence[Any] = (
        pa.array([stage] * len(dead), pa.string()),
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


def _place(rows: pa.RecordBatch, at: int) -> str:
    topic, partition, offset = (
        rows.column(name)[at].as_py() for name in ("topic", "partition", "offset")
    )
    return f"{topic}-{partition} offset {offset}"


def _refused(rows: pa.RecordBatch, at: int, time_ms: int, watermark_ms: int) -> OttlaError:
    return OttlaError(
        ErrorCode.INVALID_TIMESTAMP,
        f"{_place(rows, at)} is late: {_words(time_ms, watermark_ms)}. Keep late "
        "rows (--late-rows keep), make dead letters of them (--late-rows dead-letter), or allow "
        "more lateness (--allowed-lateness)",
    )
