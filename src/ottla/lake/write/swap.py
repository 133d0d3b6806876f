"""Commits a replacement: removes the table's rows of some ranges, adds the rows that were read."""

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.job.task import Runner
from ottla.lake.model.chain import DATA_FOLDER, DEAD_LETTERS_FOLDER, in_bucket
from ottla.lake.model.event_times import By
from ottla.lake.model.layout import DEAD, layout_of
from ottla.lake.model.live import live_letters
from ottla.lake.model.manifest import DataFile, Manifest, next_manifest
from ottla.lake.model.row_hash import MODULUS
from ottla.lake.tables.commit import Steps, removed_on_failure
from ottla.lake.tables.file_check import check_bytes, require_files
from ottla.lake.tables.table import LakeTable, LoadLost
from ottla.lake.write.compact import ROW_GROUP_BYTES, compaction_on
from ottla.lake.write.counts import Columns, counting_now
from ottla.lake.write.lost_race import lost_by_partition
from ottla.lake.write.rewrite_task import RewriteTask, rewritten
from ottla.lake.write.upkeep_commit import (
    commit_on_newest,
    is_letters,
    lost_to,
    lost_where_removed,
    require_live,
)

# How often files are looked up again because a compaction has taken some of them.
_TRIES = 3
# Offsets [start, end) by partition.
Ranges = Mapping[int, tuple[int, int]]


class NothingDiffers(Exception):
    """Raised if the table already has exactly the rows that were read."""

    def __init__(self, rows: int) -> None:
        super().__init__("nothing differs")
        self.rows = rows


class RangeSwap:
    """One replacement of `ranges`. `run` runs the tasks that cut files at the ranges' ends."""

    def __init__(
        self,
        table: LakeTable,
        history: Sequence[Manifest],
        ranges: Ranges,
        run: Runner,
        steps: Steps,
        *,
        accept_loss: bool,
        on_step: Callable[[str], None],
    ) -> None:
        self._table = table
        self._ranges = ranges
        self._run = run
        self._steps = steps
        self._accept_loss = accept_loss
        self._on_step = on_step
        self._schema = history[-1].table_schema if history else None
        events = history[-1].events if history else None
        self._by: By = events.by if events else "none"
        self._require_replaceable()

    def commit(self, read: Manifest) -> Manifest:
        """Commit the rows that were read, as `read` describes them.

        Raises NothingDiffers; and LoadLost if others changed columns, or keep changing files of the
        ranges.
        """
        for _ in range(_TRIES - 1):
            with suppress(LoadLost):
                return self._commit_once(read)
        return self._commit_once(read)

    def _commit_once(self, read: Manifest) -> Manifest:
        table = self._table
        counting = counting_now(table)
        touched = list(filter(self._overlaps, (*counting.files, *counting.letters)))
        cut = [file for file in touched if not self._is_inside(file)]
        cut_id = uuid.uuid4().hex
        with (
            table.running.mark(cut_id),
            removed_on_failure(table, read.version, cut_id, self._steps),
        ):
            self._on_step("files looked up")
            rewrites = [one for file in cut for one in self._pieces(file, read.version, cut_id)]
            with lost_where_removed(table, touched, "replacement"):
                pieces = rewritten(rewrites, self._run)
            removed = sorted(
                filter(self._is_inside, [*touched, *pieces]),
                key=lambda file: (file.partition, file.start),
            )
            if self._is_same(removed, read, counting.columns):
                raise NothingDiffers(read.rows)
            with lost_where_removed(table, touched, "replacement"):
                lost = self._losses(removed, read)
            if rewrites:
                commit_on_newest(
                    table, compaction_on(table, rewrites, pieces, cut_id, self._schema)
                )
                self._on_step("files cut")
        # The steps that follow belong to the next commit.
        self._steps.done.clear()
        return commit_on_newest(table, self._replacement(read, removed, lost))

    def _counting(self) -> list[DataFile]:
        """Return the live files of rows and of dead letters."""
        return [*self._table.live_files(), *live_letters(self._table.history())]

    def _require_replaceable(self) -> None:
        """Refuse ranges with rows that a commit of ours cannot remove."""
        counting = counting_now(self._table)
        for file in filter(self._overlaps, counting.files):
            if file.path not in counting.readers_see:
                raise self._refused(f"another program has replaced {file.path}")
            if not self._is_inside(file) and counting.columns[file.path] != self._schema:
                raise self._refused(
                    f"{file.path} sticks out of the range (it has offsets {file.start} to "
                    f"{file.end}) and has older columns: replace all of it"
                )

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

    def _pieces(self, file: DataFile, version: int, cut_id: str) -> list[RewriteTask]:
        """Cut a file where a range starts or ends in it."""
        range_ = self._ranges[file.partition]
        inner = {at for at in range_ if file.start < at < file.end}
        return [
            RewriteTask(
                store=self._table.store,
                path=self._stem(file, version, cut_id, start),
                files=(file,),
                start=start,
                end=end,
                layout=DEAD if is_letters(file) else layout_of(self._schema),
                row_group_bytes=ROW_GROUP_BYTES,
            )
            for start, end in pairwise(sorted({file.start, *inner, file.end}))
        ]

    def _stem(self, file: DataFile, version: int, cut_id: str, start: int) -> str:
        stem = self._table.file_stem(version, cut_id, file.partition, start)
        if not is_letters(file):
            return in_bucket(stem, self._by, file.event)
        return stem.replace(f"{DATA_FOLDER}/", f"{DEAD_LETTERS_FOLDER}/", 1)

    def _losses(self, removed: Sequence[DataFile], read: Manifest) -> Mapping[int, int]:
        """Return how many offsets each partition loses. Raises OttlaError on unaccepted loss."""
        came = (*read.files, *read.dead_letters)
        found = lost_by_partition(self._table.store, removed, came, read.ledgers)
        if found and not self._accept_loss:
            lines = ", ".join(
                f"{count} of {read.topic}-{partition}" for partition, count in sorted(found.items())
            )
            raise OttlaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"the table has rows that the topic does not hold any more: {lines}. Nothing was "
                "committed. Replace a range without them, or accept that the table loses them "
                "(--accept-loss, accept_loss=True)",
            )
        return found

    def _is_same(self, removed: Sequence[DataFile], read: Manifest, columns_of: Columns) -> bool:
        """Return whether the table has the same rows and columns, by manifests and files."""

        def is_whole(file: DataFile) -> bool:
            try:
                return not check_bytes(self._table.store, file)
            except FileNotFoundError:
                return False

        rows = [file for file in removed if not is_letters(file)]
        letters = filter(is_letters, removed)
        columns = [columns_of.get(file.path, self._schema) for file in rows]
        return (
            _sums(rows) == _sums(read.files)
            and _sums(letters) == _sums(read.dead_letters)
            and all(one == read.table_schema for one in columns)
            and all(map(is_whole, removed))
        )

    def _replacement(
        self, read: Manifest, removed: Sequence[DataFile], lost: Mapping[int, int]
    ) -> Callable[[Manifest, str | None], Manifest]:
        table = self._table

        def make(before: Manifest, digest: str | None) -> Manifest:
            require_live(table, removed, "replacement")
            known = {file.path for file in removed}
            for file in filter(self._overlaps, self._counting()):
                if file.path not in known:
                    raise lost_to(table, f"added {file.path} to the range", "replacement")
            if before.table_schema != self._schema:
                raise lost_to(table, "changed the table's columns", "replacement")
            require_files(table.store, (*read.files, *read.dead_letters))
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

        return make


def _sums(files: Iterable[DataFile]) -> dict[tuple[int, str], tuple[int, int]]:
    """Return the row count and hash of each partition and bucket of event time."""
    found: dict[tuple[int, str], tuple[int, int]] = {}
    for file in files:
        rows, hashed = found.get((file.partition, file.event), (0, 0))
        sums = (rows + file.rows, (hashed + int(file.hash, 16)) % MODULUS)
        found[file.partition, file.event] = sums
    return found
