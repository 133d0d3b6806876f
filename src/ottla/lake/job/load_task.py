"""The task of a load: fetches an offset range, writes its Parquet files, and describes them.

It runs on any executor. Every attempt writes files with names of its own, so if a task runs twice,
one attempt never overwrites a file of the other.
"""

import uuid
from collections.abc import Generator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace

import pyarrow as pa

from ottla.base.errors import OttlaError
from ottla.lake.job.bucket_output import BucketOutputs
from ottla.lake.job.output import ROW_GROUP_BYTES, ROW_GROUP_ROWS, ParquetOutput, completed
from ottla.lake.job.task import ALONE, TaskResult
from ottla.lake.model.chain import in_bucket, letters_path
from ottla.lake.model.event_times import EventRule
from ottla.lake.model.layout import DEAD, RAW, FileLayout
from ottla.lake.model.plan import Range
from ottla.lake.rows.evolution import NewField
from ottla.lake.rows.sorted_rows import (
    RowSorter,
    RowSorting,
    SeenTimes,
    SortedRows,
    event_column,
    without_late,
    without_unnamed,
)
from ottla.lake.source.access import Bootstrap
from ottla.lake.source.cluster import connect
from ottla.lake.source.reader import read_range
from ottla.lake.store.store import FileStore
from ottla.ledger.partition import RangeAccount

# Batches of rows. The mapping has the original timestamp, by offset, of each row whose timestamp
# became null.
Rows = Generator[tuple[pa.RecordBatch, Mapping[int, int]]]


def read_rows(
    wanted: Range,
    bootstrap: Bootstrap,
    account: RangeAccount,
    *,
    skip_unreadable: bool,
    null_bad_timestamps: bool,
) -> Rows:
    """Yield the rows of a range in order, and account for each offset in `account`.

    Raises OttlaError.
    """
    bad_times: dict[int, int] = {}
    with closing(connect(bootstrap)) as cluster:
        for batch in read_range(
            wanted,
            cluster,
            account,
            skip_unreadable=skip_unreadable,
            null_bad_timestamps=null_bad_timestamps,
            bad_times=bad_times,
        ):
            yield batch, bad_times
            bad_times.clear()


@dataclass(frozen=True, slots=True)
class RangeTask:
    """An offset range to read."""

    wanted: Range
    bootstrap: Bootstrap
    compacted: bool
    store: FileStore
    path: str  # Prefix of the paths of its files in `store`; each attempt appends its own name.
    skip_unreadable: bool = False
    null_bad_timestamps: bool = False
    # The approximate size of the range in the partition's log.
    size_bytes: int = ALONE

    @property
    def offsets(self) -> int:
        return self.wanted.end - self.wanted.start


def account_of(task: RangeTask) -> RangeAccount:
    """Return an empty account for a task's range."""
    return RangeAccount(task.wanted.partition, task.wanted.start, task.wanted.end, task.compacted)


def batches_of(task: RangeTask, account: RangeAccount) -> Rows:
    """Yield the rows of a task's range as `read_rows` does."""
    return read_rows(
        task.wanted,
        task.bootstrap,
        account,
        skip_unreadable=task.skip_unreadable,
        null_bad_timestamps=task.null_bad_timestamps,
    )


@dataclass(frozen=True, slots=True)
class LoadTask(RangeTask):
    """An offset range to load."""

    # If None, only the raw columns are written.
    sorting: RowSorting | None = None
    # If None, event times are ignored, and all rows go to one file.
    events: EventRule | None = None
    row_group_rows: int = ROW_GROUP_ROWS
    row_group_bytes: int = ROW_GROUP_BYTES

    def run(self) -> TaskResult:
        """Load the range into files with new names. If it raises OttlaError, no file remains."""
        return load_range(self, uuid.uuid4().hex[:12])


def load_range(task: LoadTask, attempt: str) -> TaskResult:
    """Load a range into files named after `attempt`. If it raises OttlaError, no file remains."""
    account = account_of(task)
    rows = _Rows(task, attempt)
    with completed(rows), closing(batches_of(task, account)) as batches:
        for batch, bad_times in batches:
            rows.write(batch, bad_times)
    ledger = account.ledger_with_gaps()
    dead = rows.dead.rows
    ledger = replace(ledger, loaded=ledger.loaded - dead, dead_letters=dead)
    return TaskResult(
        ledger,
        tuple(rows.outputs.files),
        tuple(account.skipped),
        rows.dead.letters_of(task.wanted),
        rows.news(),
        rows.seen.highest_ms,
        rows.seen.late,
    )


class _Rows:
    """Writes each row of a task to the file of its bucket, or to that of dead letters."""

    def __init__(self, task: LoadTask, attempt: str) -> None:
        self._task = task
        self._sorter = RowSorter(task.sorting) if task.sorting else None
        self._names = task.sorting.schema.names if task.sorting else []
        self._attempt = attempt
        self.seen = SeenTimes()
        self._by = task.events.by if task.events else "none"
        self.outputs = BucketOutputs(task.wanted, self._by, self._begin)
        path = letters_path(f"{task.path}-{attempt}.parquet")
        self.dead = ParquetOutput(task.store, path, layout=DEAD)

    def _begin(self, bucket: str, number: int) -> ParquetOutput:
        task = self._task
        more = f"n{number}" if number else ""
        path = in_bucket(f"{task.path}-{self._attempt}{more}.parquet", self._by, bucket)
        return ParquetOutput(
            task.store,
            path,
            layout=_layout(task.sorting),
            row_group_rows=task.row_group_rows,
            row_group_bytes=task.row_group_bytes,
        )

    def write(self, batch: pa.RecordBatch, bad_times: Mapping[int, int]) -> None:
        rule = self._task.events
        if self._sorter is not None:
            rows = self._sorter.sort(batch, bad_times)
        else:
            rows = SortedRows(batch, (), batch.slice(0, 0), ())
        if rule is not None and rows.kept.num_rows:
            rows = without_unnamed(rows, rule, self._names)
        if rule is not None and rows.kept.num_rows:
            rows = without_late(rows, rule, self._names, self.seen)
        if rows.kept.num_rows:
            times = event_column(rows, rule, self._names) if rule else None
            self.outputs.write(rows.kept, rows.typed, times)
        if rows.dead.num_rows:
            self.dead.write(rows.dead, rows.reasons)

    def finish(self) -> None:
        self.outputs.finish()
        self.dead.finish()

    def discard(self) -> None:
        self.outputs.discard()
        self.dead.discard()
        for file in self.outputs.files:
            with suppress(OSError, OttlaError):
                self._task.store.remove(file.path)

    def news(self) -> tuple[tuple[NewField, int], ...]:
        return tuple(self._sorter.news.values()) if self._sorter else ()


def _layout(sorting: RowSorting | None) -> FileLayout:
    if sorting is None or not sorting.decode.sides():
        return RAW
    return FileLayout(tuple(sorting.schema.fields), sorting.decode.keep_raw)
