"""Divides the rows that a task reads into rows with typed columns and dead letters."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.quantities import iso
from ottla.lake.model.decode_spec import Decode
from ottla.lake.model.event_times import TIMESTAMP, EventRule, micros_of
from ottla.lake.model.layout import TypedSchema
from ottla.lake.rows.decoder import Decoder, RefusedRow, require_none
from ottla.lake.rows.evolution import NewField, Path, merged
from ottla.lake.rows.registry import schemas_of

TIMESTAMP_STAGE = "timestamp"
LATE_STAGE = "late"
UNNAMED_STAGE = "event_time"
# Limits new fields, because objects with ever different names would each add a column.
_NEWS_MAX = 1_000
# Bucket names exist only for the years 1 to 9999, here in microseconds since 1970. An event time in
# another year is mostly that of a producer that writes a wrong unit.
_FIRST_US, _END_US = -62_135_596_800_000_000, 253_402_300_800_000_000


@dataclass(frozen=True, slots=True)
class RowSorting:
    """How a load's tasks divide their rows. Can be pickled.

    With `dead_timestamps`, a record whose timestamp does not fit into the column is a dead letter.
    """

    decode: Decode = field(default_factory=Decode)
    schema: TypedSchema = field(default_factory=TypedSchema)
    dead_timestamps: bool = False


@dataclass(frozen=True, slots=True)
class SortedRows:
    """The rows of one batch: `kept` with `typed` columns, and `dead` with `reasons` as columns."""

    kept: pa.RecordBatch
    typed: Sequence[Any]
    dead: pa.RecordBatch
    reasons: Sequence[Any]

    def without(
        self, refused: Mapping[int, RefusedRow], bad_times: Mapping[int, int] | None = None
    ) -> "SortedRows":
        """Return the rows after moving the `refused` rows of `kept` to the dead letters.

        `refused` is by row number. `bad_times` has timestamps that do not fit into the column, by
        offset.
        """
        if not refused:
            return self
        rows = sorted(refused)
        dead = self.kept.take(pa.array(rows, pa.int64()))
        reasons: Sequence[Any] = _reasons([refused[row] for row in rows], dead, bad_times or {})
        if self.dead.num_rows:
            dead = pa.Table.from_batches([self.dead, dead]).combine_chunks()
            order = pc.sort_indices(dead.column("offset"))
            (dead,) = dead.take(order).combine_chunks().to_batches()
            pairs = zip(self.reasons, reasons, strict=True)
            reasons = [pa.concat_arrays(pair).take(order) for pair in pairs]
        mask = np.ones(self.kept.num_rows, bool)
        mask[rows] = False
        keep = pa.array(mask)
        kept = self.kept.filter(keep)
        return SortedRows(kept, [one.filter(keep) for one in self.typed], dead, reasons)


def _reasons(
    refused: Sequence[RefusedRow], dead: pa.RecordBatch, bad_times: Mapping[int, int]
) -> tuple[Any, ...]:
    """Return the columns of dead letters: stage, error, schema id, and timestamp in ms."""
    millis = dead.column("timestamp").cast(pa.int64()).to_pylist()
    times = [
        bad_times.get(offset) if micros is None else micros // 1_000
        for offset, micros in zip(dead.column("offset").to_pylist(), millis, strict=True)
    ]
    return (
        pa.array([one.stage for one in refused], pa.string()),
        pa.array([one.error for one in refused], pa.string()),
        pa.array([one.schema_id for one in refused], pa.int64()),
        pa.array(times, pa.int64()),
    )


class RowSorter:
    """Divides batches. `news` has the fields that the schema lacks, with their first offsets."""

    def __init__(self, sorting: RowSorting) -> None:
        self._sorting = sorting
        self._decoder = Decoder(sorting.decode, sorting.schema, schemas_of(sorting.decode))
        self.news: dict[tuple[str, Path], tuple[NewField, int]] = {}

    def sort(self, batch: pa.RecordBatch, bad_times: Mapping[int, int]) -> SortedRows:
        """Divide the rows of a batch into kept rows and dead letters.

        `bad_times` has timestamps that do not fit into the column, by offset. Raises OttlaError for
        the first bad record if the policy is `fail`.
        """
        decoded = self._decoder.decode(batch)
        offsets = batch.column("offset")
        for new in decoded.news:
            self._note(batch.column("topic")[0].as_py(), new, offsets[new.row].as_py())
        policy = self._sorting.decode.on_bad_record
        if policy == "fail" and decoded.refused:
            topic, partition = (batch.column(name)[0].as_py() for name in ("topic", "partition"))
            require_none(topic, partition, lambda row: int(offsets[row].as_py()), decoded)
        by_row: dict[int, RefusedRow] = {}
        if self._sorting.dead_timestamps and bad_times:
            nulls = batch.column("timestamp").is_null().to_numpy(zero_copy_only=False)
            for row in np.flatnonzero(nulls).tolist():
                time = bad_times.get(offsets[row].as_py())
                why = f"no timestamp of Spark can hold {time} ms"
                by_row[row] = RefusedRow(row, TIMESTAMP_STAGE, why)
        for one in decoded.refused if policy != "null" else ():
            by_row.setdefault(one.row, one)
        found = SortedRows(batch, decoded.columns, batch.slice(0, 0), ())
        return found.without(by_row, bad_times)

    def _note(self, topic: str, new: NewField, offset: int) -> None:
        key = (new.side, new.path)
        before, first = self.news.get(key, (None, offset))
        if before is not None:
            self.news[key] = (replace(before, type=merged(before.type, new.type)), first)
            return
        if len(self.news) >= _NEWS_MAX:
            raise OttlaError(
                ErrorCode.INVALID_RECORD,
                f"the records of {topic} have more than {_NEWS_MAX} fields that no column has, "
                f"such as {'.'.join(new.path)} at offset {offset}: declare the columns (map<T> "
                "where names vary), or leave new fields out (rules.add = ignore)",
            )
        self.news[key] = (new, offset)


# -- late rows, and rows whose event time no folder can be named for


@dataclass(slots=True)
class SeenTimes:
    """A task's highest event time that is not in the future, and its number of late rows."""

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
    """Count late rows in `seen`, and move them to the dead letters if `late_rows` says so.

    Raises OttlaError for the first late row if `late_rows` is `fail`.
    """
    micros = micros_of(event_column(rows, rule, names))
    if micros.null_count == len(micros):
        return rows
    known = np.asarray(micros.drop_null())
    times = known[known <= rule.clock_ms * 1000]
    if len(times):
        highest = int(times.max()) // 1000
        seen.highest_ms = max(highest, highest if seen.highest_ms is None else seen.highest_ms)
    watermark_ms = rule.watermark_ms
    if watermark_ms is None or known.min() >= watermark_ms * 1000:
        return rows
    is_late = np.asarray(micros.fill_null(1 << 62)) < watermark_ms * 1000
    seen.late += int(is_late.sum())
    if rule.late_rows == "keep":
        return rows

    def why(time_ms: int) -> str:
        return (
            f"its event time {iso(time_ms)} lies before {iso(watermark_ms)}, up to which the table "
            "was complete"
        )

    if rule.late_rows == "fail":
        at = int(np.flatnonzero(is_late)[0])
        raise OttlaError(
            ErrorCode.INVALID_TIMESTAMP,
            f"{_place(rows.kept, at)} is late: {why(micros[at].as_py() // 1000)}. Keep late rows "
            "(--late-rows keep), make dead letters of them (--late-rows dead-letter), or allow "
            "more lateness (--allowed-lateness)",
        )
    return rows.without(_by_time(is_late, LATE_STAGE, micros, why))


def without_unnamed(rows: SortedRows, rule: EventRule, names: Sequence[str]) -> SortedRows:
    """Move rows to the dead letters whose event time is in no bucket with a name.

    Raises OttlaError for the first such row unless `late_rows` is `dead-letter`.
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
    return rows.without(_by_time(is_unnamed, UNNAMED_STAGE, micros, _out_of_years))


def _out_of_years(time_ms: int) -> str:
    return (
        f"its event time {time_ms} ms lies outside of the years 1 to 9999; was it written in "
        "another unit?"
    )


def _by_time(
    which: Any, stage: str, micros: Any, why: Callable[[int], str]
) -> dict[int, RefusedRow]:
    """Return a refused row for each row flagged in `which`. `why` makes its error from a time."""
    return {
        row: RefusedRow(row, stage, why(micros[row].as_py() // 1000))
        for row in np.flatnonzero(which).tolist()
    }


def _place(rows: pa.RecordBatch, at: int) -> str:
    topic, partition, offset = (
        rows.column(name)[at].as_py() for name in ("topic", "partition", "offset")
    )
    return f"{topic}-{partition} offset {offset}"
