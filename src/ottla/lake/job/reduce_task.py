"""The first stage of a changelog run: one task for each range of offsets.

A task reads a range, drops changes that later changes of the range replace, and divides the others
by bucket.
"""

import uuid
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.job.load_task import RangeTask, account_of, batches_of
from ottla.lake.job.output import ParquetOutput, completed
from ottla.lake.job.spilled import Piece, SpilledOutput
from ottla.lake.job.task import TaskResult
from ottla.lake.model.layout import DEAD
from ottla.lake.model.manifest import Changelog, Keeps
from ottla.lake.model.row_hash import MODULUS, keyed_hash
from ottla.lake.model.schema import ROW_SCHEMA
from ottla.lake.rows.changelog_columns import Columns, Flags, of_no_row
from ottla.lake.rows.evolution import NewField
from ottla.lake.rows.key_changes import is_latest
from ottla.lake.rows.sorted_rows import RowSorter

OnNullKey = Literal["fail", "skip"]

# Waiting changes are reduced when they reach this size, to limit the memory of a task.
_BYTES_AT_ONCE = 128 << 20


@dataclass(frozen=True, slots=True)
class ReduceTask(RangeTask):
    """A range to read for a changelog table. `path` is the prefix of its file of changes."""

    changelog: Changelog = field(kw_only=True)
    on_null_key: OnNullKey = "fail"
    columns: Columns = field(default_factory=Columns)
    # Prefix of the path of the file of dead letters; each attempt appends its own name.
    dead_path: str = ""
    # Only for a replay by `verify`: offsets of dead letters, which are left out, and the key under
    # which these records are hashed.
    left_out: Sequence[int] = ()
    left_out_key: bytes = field(default=b"", repr=False)
    is_replay: bool = False

    def run(self) -> "Reduced":
        """Read the range and write its changes by bucket. Raises OttlaError."""
        return reduce_range(self)


@dataclass(frozen=True, slots=True)
class Reduced(TaskResult):
    """The result of reading a range: a ledger, and a file of changes at `path`.

    If `pieces` is empty, there is no file of changes.
    """

    path: str = ""
    pieces: tuple[Piece, ...] = ()
    # The offsets of dead letters that were found in the range, and the hash of their records.
    left_out: tuple[int, ...] = ()
    left_out_hash: int = 0


def reduce_range(job: ReduceTask) -> Reduced:
    """Read the range and write its changes by bucket.

    If it raises OttlaError, no file remains.
    """
    account = account_of(job)
    attempt = uuid.uuid4().hex[:12]
    path = f"{job.path}-{attempt}.arrow"
    output = SpilledOutput(job.store, path, job.changelog.buckets, job.columns.schema)
    dead = ParquetOutput(job.store, f"{job.dead_path}-{attempt}.parquet", layout=DEAD)
    taking = _Taking(job, dead)
    waiting = _Waiting(job.changelog.keeps, job.columns.schema)
    with completed(output, dead), closing(batches_of(job, account)) as batches:
        for batch, bad_times in batches:
            if waiting.add(taking.changes_of(batch, bad_times)):
                output.write(*waiting.rows())
        output.write(*waiting.rows())
    ledger = account.ledger_with_gaps()
    ledger = replace(
        ledger,
        loaded=ledger.loaded - taking.keyless - dead.rows - len(taking.left_out),
        keyless=taking.keyless,
        dead_letters=dead.rows + len(taking.left_out),
    )
    return Reduced(
        ledger,
        (),
        tuple(account.skipped),
        dead.letters_of(job.wanted),
        taking.news,
        path=path,
        pieces=tuple(output.pieces),
        left_out=tuple(taking.left_out),
        left_out_hash=taking.left_out_hash,
    )


class _Taking:
    """Selects changes: records that have a key, can be decoded, and are not dead letters."""

    def __init__(self, job: ReduceTask, dead: ParquetOutput) -> None:
        self._job = job
        self._dead = dead
        self._sorter = RowSorter(job.columns.sorting) if job.columns.sorting else None
        self._operation = job.columns.operation
        self._wanted_out = pa.array(job.left_out, pa.int64())
        self.keyless = 0
        self.left_out: list[int] = []
        self.left_out_hash = 0

    @property
    def news(self) -> tuple[tuple[NewField, int], ...]:
        """Return fields that the columns lack, each with the first offset that has it."""
        return tuple(self._sorter.news.values()) if self._sorter else ()

    def changes_of(self, batch: pa.RecordBatch, bad_times: Mapping[int, int]) -> pa.RecordBatch:
        """Return the changes in a batch, in the table's columns. Raises OttlaError."""
        if len(self._wanted_out):
            batch = self._without_left_out(batch)
        rows = _with_key(batch, self._job.on_null_key)
        self.keyless += batch.num_rows - rows.num_rows
        if self._sorter is None:
            return rows
        found = self._sorter.sort(rows, bad_times)
        if found.dead.num_rows:
            self._dead.write(found.dead, found.reasons)
        columns = [*found.kept.columns, *found.typed]
        changes = pa.RecordBatch.from_arrays(columns, schema=self._job.columns.schema)
        odd = of_no_row(changes, self._operation)
        if not odd.any() or self._job.is_replay:
            return changes
        self._refuse(changes.filter(pa.array(odd)))
        return changes.filter(pa.array(~odd))

    def _without_left_out(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        is_dead = pc.is_in(batch.column("offset"), self._wanted_out)
        dead = batch.filter(is_dead)
        self.left_out += dead.column("offset").to_pylist()
        self.left_out_hash = (
            self.left_out_hash + keyed_hash(dead, self._job.left_out_key)
        ) % MODULUS
        return batch.filter(pc.invert(is_dead))

    def _refuse(self, rows: pa.RecordBatch) -> None:
        """Write envelopes that change no row of a key as dead letters, or raise OttlaError."""
        sorting = self._job.columns.sorting
        assert sorting is not None, "envelopes are decoded"
        operation, offset = rows.column(self._operation)[0], rows.column("offset")[0]
        why = f"an envelope with op {operation} changes no row of a key"
        if sorting.decode.on_bad_record != "dead-letter":
            topic, partition = rows.column("topic")[0], rows.column("partition")[0]
            raise OttlaError(
                ErrorCode.INVALID_RECORD,
                f"the record at {topic}-{partition} offset {offset}: {why}; have such records "
                "among the dead letters (`ottla lake changelog --on-bad-record dead-letter`, "
                "Decode(…, on_bad_record='dead-letter')), or stop the connector from writing them "
                "(skipped.operations=t)",
            )
        count = rows.num_rows
        reasons = [
            pa.array(["schema"] * count, pa.string()),
            pa.array([why] * count, pa.string()),
            pa.nulls(count, pa.int64()),
            pc.divide(rows.column("timestamp").cast(pa.int64()), 1_000),
        ]
        self._dead.write(rows.select(ROW_SCHEMA.names), reasons)


class _Waiting:
    """Changes that wait in memory until they are written.

    Unless the table is a history, changes that later ones replace are dropped now and then.
    """

    def __init__(self, keeps: Keeps, schema: pa.Schema) -> None:
        self._keeps = keeps
        self._empty = schema.empty_table()
        self._parts: list[pa.Table] = [self._empty]
        self._bytes = 0

    def add(self, changes: pa.RecordBatch) -> bool:
        """Add changes. Return whether the waiting changes must be written to free memory."""
        self._parts.append(pa.Table.from_batches([changes]))
        self._bytes += changes.nbytes
        if self._bytes < _BYTES_AT_ONCE:
            return False
        rows, counts = self.rows()
        left = rows if counts.all() else rows.filter(pa.array(counts))
        # If there are few keys, little is left after reducing, and can go on waiting.
        self._parts, self._bytes = [left], left.nbytes
        return self._bytes > _BYTES_AT_ONCE // 2

    def rows(self) -> tuple[pa.Table, Flags]:
        """Return and forget the waiting changes, each with a flag that says whether to write it."""
        rows = pa.concat_tables(self._parts)
        self._parts, self._bytes = [self._empty], 0
        if self._keeps == "latest":
            return rows, is_latest(rows)
        return rows, np.ones(rows.num_rows, np.bool_)


def _with_key(batch: pa.RecordBatch, on_null_key: OnNullKey) -> pa.RecordBatch:
    """Return the records that have a key. Other records are skipped or raise OttlaError."""
    keys = batch.column("key")
    if keys.null_count == 0:
        return batch
    if on_null_key == "fail":
        first = pc.index(keys.is_null(), True).as_py()
        topic, partition = batch.column("topic")[0], batch.column("partition")[0]
        raise OttlaError(
            ErrorCode.INVALID_RECORD,
            f"the record at {topic}-{partition} offset {batch.column('offset')[first]} has no "
            "key, and a changelog table has one row of each key: write keys, or leave such records "
            "out (`ottla lake changelog --on-null-key skip`, changelog(…, on_null_key='skip')), "
            "which counts them in the ledger",
        )
    return batch.filter(keys.is_valid())
