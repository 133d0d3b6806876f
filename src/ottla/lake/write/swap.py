"""Commits a replacement: removes the rows of some offset ranges, and adds the rows read again."""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.job.rewrite_task import RewriteTask
from ottla.lake.model.live import live_letters
from ottla.lake.model.manifest import DataFile, Manifest, next_manifest
from ottla.lake.model.row_hash import MODULUS
from ottla.lake.store.store import FileStore
from ottla.lake.tables.file_check import check_bytes
from ottla.lake.tables.table import CommitConflict
from ottla.lake.write.engine import Build
from ottla.lake.write.load import rows_read
from ottla.lake.write.load_plan import LoadPlan
from ottla.lake.write.rewrite import (
    Columns,
    Rewrite,
    is_letters,
    live_now,
    lost_to,
    lost_where_removed,
    require_live,
)
from ottla.lake.write.settings import ACCEPT_LOSS, LoadSettings
from ottla.lake.write.topic_writer import TopicWriter
from ottla.ledger.partition import PartitionLedger

# How often a replacement is tried if compactions remove some of its files meanwhile.
_TRIES = 3
# Offsets of this many files are cached. Files are compared in order, so neighbours are hit.
_REMEMBERED = 4


class NothingDiffers(Exception):
    """Raised if the table already has exactly the rows that were read."""

    def __init__(self, rows: int) -> None:
        super().__init__("nothing differs")
        self.rows = rows


def ranges_replaced(writer: TopicWriter, plan: LoadPlan, settings: LoadSettings) -> Manifest:
    """Read the plan's ranges, and commit their rows in place of the table's.

    Raises NothingDiffers if the table has these rows already, CommitConflict if other commits
    changed columns, or keep changing files of the ranges.
    """
    assert plan.before is not None, "ranges that were loaded are in a commit"
    swap = _RangeSwap(writer, plan, plan.before, settings)
    plan, build = rows_read(writer, plan, settings)
    read = build(plan.before, plan.digest)
    writer.require_sound(read, plan)
    for _ in range(_TRIES - 1):
        with suppress(CommitConflict):
            return swap.commit(read)
    return swap.commit(read)


class _RangeSwap:
    """One replacement of a plan's ranges. Raises OttlaError for rows that it cannot remove."""

    def __init__(
        self, writer: TopicWriter, plan: LoadPlan, before: Manifest, settings: LoadSettings
    ) -> None:
        self._writer = writer
        self._table = writer.table
        self._before = before
        self._settings = settings
        # Offsets [start, end) by partition.
        self._ranges = {p: (at, plan.limits.ends[p]) for p, at in plan.limits.starts.items()}
        live = live_now(self._table)
        for file in filter(self._overlaps, live.files):
            if file.path not in live.readers_see:
                raise self._refused(f"another program has replaced {file.path}")
            if not self._is_inside(file) and live.columns[file.path] != before.table_schema:
                raise self._refused(
                    f"{file.path} sticks out of the range (it has offsets {file.start} to "
                    f"{file.end}) and has older columns: replace all of it"
                )

    def commit(self, read: Manifest) -> Manifest:
        """Cut files that stick out of the ranges, then commit the rows that `read` describes."""
        writer, table = self._writer, self._table
        live = live_now(table)
        touched = list(filter(self._overlaps, (*live.files, *live.letters)))
        cut = Rewrite(writer, self._before, "replacement")
        with writer.writing(self._before.version + 1, cut.load_id):
            writer.steps.reached("files looked up")
            tasks = [
                one
                for file in touched
                if not self._is_inside(file)
                for one in self._pieces(cut, file, live.columns)
            ]
            with lost_where_removed(table, touched, "replacement"):
                pieces = cut.written(tasks)
            removed = sorted(
                filter(self._is_inside, [*touched, *pieces]),
                key=lambda file: (file.partition, file.start),
            )
            if self._is_same(removed, read, live.columns):
                raise NothingDiffers(read.rows)
            with lost_where_removed(table, touched, "replacement"):
                lost = self._losses(removed, read)
            if tasks:
                writer.commit(cut.build(tasks, pieces))
                writer.steps.reached("files cut")
        return writer.commit(self._replacement(read, removed, lost))

    def _refused(self, why: str) -> OttlaError:
        return OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"the range can't be replaced in {self._table.store.url}: {why}; nothing was committed",
        )

    def _overlaps(self, file: DataFile) -> bool:
        start, end = self._ranges.get(file.partition, (0, 0))
        return file.start < end and start < file.end

    def _is_inside(self, file: DataFile) -> bool:
        start, end = self._ranges.get(file.partition, (0, 0))
        return start <= file.start and file.end <= end

    def _pieces(self, cut: Rewrite, file: DataFile, columns: Columns) -> list[RewriteTask]:
        """Return tasks that cut a file at the start and the end of the range."""
        range_ = self._ranges[file.partition]
        inner = {at for at in range_ if file.start < at < file.end}
        bounds = pairwise(sorted({file.start, *inner, file.end}))
        return [cut.task((file,), start, end, columns) for start, end in bounds]

    def _losses(self, removed: Sequence[DataFile], read: Manifest) -> Mapping[int, int]:
        """Return how many offsets each partition loses. Raises OttlaError on unaccepted loss."""
        came = (*read.files, *read.dead_letters)
        found = _lost_by_partition(self._table.store, removed, came, read.ledgers)
        if found and not self._settings.takes_loss:
            lines = ", ".join(
                f"{count} of {read.topic}-{partition}" for partition, count in sorted(found.items())
            )
            raise OttlaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"the table has rows that the topic does not hold any more: {lines}. Nothing was "
                "committed. Replace a range without them, or accept that the table loses them: "
                f"{ACCEPT_LOSS}",
            )
        return found

    def _is_same(self, removed: Sequence[DataFile], read: Manifest, columns_of: Columns) -> bool:
        """Return whether the table has the rows and columns of `read`, in undamaged files."""

        def is_whole(file: DataFile) -> bool:
            try:
                return not check_bytes(self._table.store, file)
            except FileNotFoundError:
                return False

        rows = [file for file in removed if not is_letters(file)]
        letters = filter(is_letters, removed)
        columns = [columns_of.get(file.path, self._before.table_schema) for file in rows]
        return (
            _sums(rows) == _sums(read.files)
            and _sums(letters) == _sums(read.dead_letters)
            and all(one == read.table_schema for one in columns)
            and all(map(is_whole, removed))
        )

    def _replacement(
        self, read: Manifest, removed: Sequence[DataFile], lost: Mapping[int, int]
    ) -> Build:
        table, known = self._table, {file.path for file in removed}

        def build(before: Manifest | None, digest: str | None) -> Manifest:
            assert before is not None, "an empty table has no ranges to replace"
            require_live(table, removed, "replacement")
            for file in filter(
                self._overlaps, [*table.live_files(), *live_letters(table.history())]
            ):
                if file.path not in known:
                    raise lost_to(table, f"added {file.path} to the range", "replacement")
            if before.table_schema != self._before.table_schema:
                raise lost_to(table, "changed the table's columns", "replacement")
            return next_manifest(
                before,
                digest,
                load_id=read.load_id,
                topic=read.topic,
                topic_id=read.topic_id,
                cluster_id=read.cluster_id,
                created_ms=time.time_ns() // 1_000_000,
                files=read.files,
                ledgers=read.ledgers,
                skipped=read.skipped,
                accepted_loss=lost,
                kind="replacement",
                removed=[file for file in removed if not is_letters(file)],
                table_schema=read.table_schema,
                schema_changes=read.schema_changes,
                dead_letters=read.dead_letters,
                removed_dead_letters=[file for file in removed if is_letters(file)],
            )

        return build


def _sums(files: Iterable[DataFile]) -> dict[tuple[int, str], tuple[int, int]]:
    """Return the row count and hash for each partition and event-time bucket."""
    found: dict[tuple[int, str], tuple[int, int]] = {}
    for file in files:
        rows, hashed = found.get((file.partition, file.event), (0, 0))
        sums = (rows + file.rows, (hashed + int(file.hash, 16)) % MODULUS)
        found[file.partition, file.event] = sums
    return found


def _lost_by_partition(
    store: FileStore,
    old: Sequence[DataFile],
    new: Sequence[DataFile],
    ledgers: Sequence[PartitionLedger],
) -> Mapping[int, int]:
    """Return how many offsets of each partition are in the `old` files and not in the `new` ones.

    `ledgers` explain the ranges that the new files were read from. A partition cannot lose more
    offsets than its ledgers count as gone, and if none is gone, no file is read. If an old file
    cannot be read, row counts are compared instead of offsets.
    """
    gone: dict[int, int] = {}
    for ledger in ledgers:
        count = ledger.compacted + ledger.deleted + ledger.unreadable + ledger.absent
        gone[ledger.partition] = gone.get(ledger.partition, 0) + count
    offsets = lru_cache(_REMEMBERED)(lambda path: _offsets(store, path))
    found: dict[int, int] = {}
    for file in sorted(old, key=lambda one: (one.partition, one.start)):
        if not gone.get(file.partition):
            continue
        near = [offsets(one.path) for one in new if _overlap(one, file)]
        there = np.concatenate(near) if near else np.empty(0, np.int64)
        try:
            lost = int(np.isin(_offsets(store, file.path), there, invert=True).sum())
        except (OSError, pa.ArrowException):
            inside = int(((there >= file.start) & (there < file.end)).sum())
            beside = sum(one.rows for one in old if one is not file and _overlap(one, file))
            lost = max(0, file.rows - max(0, inside - beside))
        if lost:
            more = found.get(file.partition, 0) + lost
            found[file.partition] = min(more, gone[file.partition])
    return found


def _overlap(one: DataFile, other: DataFile) -> bool:
    return one.partition == other.partition and one.start < other.end and other.start < one.end


def _offsets(store: FileStore, path: str) -> Any:
    with store.open(path) as content:
        column = pq.read_table(content, columns=["offset"]).column("offset")
    return column.to_numpy().astype(np.int64)
