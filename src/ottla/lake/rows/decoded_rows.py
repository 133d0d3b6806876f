"""Sorts the rows that a task read: into rows with typed columns and dead letters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.decode_spec import Decode
from ottla.lake.model.layout import TypedSchema
from ottla.lake.rows.decoder import Decoder, NewField, RefusedRow, require_none
from ottla.lake.rows.infer import merged
from ottla.lake.rows.registered import RegisteredSchemas
from ottla.lake.rows.registry import SchemaRegistry

TIMESTAMP_STAGE = "timestamp"
# Objects with varying names would otherwise make a column of each name.
_NEWS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class RowSorting:
    """How a load's tasks sort their rows. Can be pickled.

    `dead_timestamps`: a record whose timestamp fits no column is a dead letter.
    """

    decode: Decode = field(default_factory=Decode)
    schema: TypedSchema = field(default_factory=TypedSchema)
    dead_timestamps: bool = False


@dataclass(frozen=True, slots=True)
class SortedRows:
    """Rows of one batch: `kept` with their typed columns, `dead` with dead-letter columns."""

    kept: pa.RecordBatch
    typed: Sequence[Any]
    dead: pa.RecordBatch
    reasons: Sequence[Any]


class RowSorter:
    """Sorts batches; `news` collects fields that the schema lacks, with their first offsets."""

    def __init__(self, sorting: RowSorting) -> None:
        decode = sorting.decode
        schemas = None
        if any(how.needs_registry for _, how in decode.sides()):
            assert decode.registry is not None, "checked by the declaration"
            schemas = RegisteredSchemas(SchemaRegistry(decode.registry))
        self._sorting = sorting
        self._decoder = Decoder(decode, sorting.schema, schemas)
        self.news: dict[tuple[str, tuple[str, ...]], tuple[NewField, int]] = {}

    def sort(self, batch: pa.RecordBatch, bad_times: Mapping[int, int]) -> SortedRows:
        """Sort the rows of a batch. `bad_times` has timestamps that fit no column, by offset.

        Raises OttlaError for the first bad record if the policy says so.
        """
        decoded = self._decoder.decode(batch)
        offsets = batch.column("offset")
        for new in decoded.news:
            self._note(batch.column("topic")[0].as_py(), new, offsets[new.row].as_py())
        refused = list(decoded.refused)
        policy = self._sorting.decode.on_bad_record
        if policy == "fail" and refused:
            topic, partition = (batch.column(name)[0].as_py() for name in ("topic", "partition"))
            require_none(topic, partition, lambda row: int(offsets[row].as_py()), decoded)
        if policy == "null":
            refused = []
        by_row: dict[int, RefusedRow] = {}
        if self._sorting.dead_timestamps and bad_times:
            for row in np.flatnonzero(batch.column("timestamp").is_null().to_numpy(False)):
                time = bad_times.get(offsets[int(row)].as_py())
                by_row[int(row)] = RefusedRow(
                    int(row), TIMESTAMP_STAGE, f"no timestamp of Spark can hold {time} ms"
                )
        for one in refused:
            by_row.setdefault(one.row, one)
        return _split(batch, decoded.columns, by_row, bad_times)

    def _note(self, topic: str, new: NewField, offset: int) -> None:
        key = (new.side, new.path)
        before = self.news.get(key)
        if before is None and len(self.news) >= _NEWS_MAX:
            raise OttlaError(
                ErrorCode.INVALID_RECORD,
                f"the records of {topic} have more than {_NEWS_MAX} fields that no column has, "
                f"such as {'.'.join(new.path)} at offset {offset}: declare the columns (map<T> "
                "where names vary), or leave new fields out (rules.add = ignore)",
            )
        if before is None:
            self.news[key] = (new, offset)
        else:
            kind = merged(before[0].type, new.type) or new.type
            self.news[key] = (NewField(new.side, new.path, kind, before[0].row), before[1])


def _split(
    batch: pa.RecordBatch,
    typed: Sequence[Any],
    by_row: Mapping[int, RefusedRow],
    bad_times: Mapping[int, int],
) -> SortedRows:
    if not by_row:
        return SortedRows(batch, typed, batch.slice(0, 0), ())
    rows = sorted(by_row)
    dead_rows = pa.array(rows, pa.int64())
    mask = np.ones(batch.num_rows, bool)
    mask[rows] = False
    keep = pa.array(mask)
    dead = batch.take(dead_rows)
    found = [by_row[row] for row in rows]
    millis = dead.column("timestamp").cast(pa.int64()).to_pylist()
    times = [
        bad_times.get(offset) if micros is None else micros // 1_000
        for offset, micros in zip(dead.column("offset").to_pylist(), millis, strict=True)
    ]
    reasons = (
        pa.array([one.stage for one in found], pa.string()),
        pa.array([one.error for one in found], pa.string()),
        pa.array([one.schema_id for one in found], pa.int64()),
        pa.array(times, pa.int64()),
    )
    return SortedRows(batch.filter(keep), [each.filter(keep) for each in typed], dead, reasons)
