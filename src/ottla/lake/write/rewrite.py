"""Rewrites data files into files with the same rows, and commits them on top of other commits.

Offsets, positions, rows and their hash stay the same: such a manifest is valid only if the files
that it adds to a partition have the same rows and hash as the files that it removes.
"""

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.job.output import ROW_GROUP_BYTES
from ottla.lake.job.rewrite_task import RewriteTask
from ottla.lake.model.chain import DEAD_LETTERS_FOLDER, in_bucket, letters_path
from ottla.lake.model.layout import DEAD, layout_of
from ottla.lake.model.live import live_letters
from ottla.lake.model.manifest import DataFile, Manifest, TableSchema, next_manifest
from ottla.lake.tables.table import CommitConflict, LakeTable
from ottla.lake.write.engine import Build, Engine
from ottla.lake.write.table_schema import LoadTyping

_TRIES = 20
# The columns of each file, by path, as in the manifest of the commit that added it.
Columns = Mapping[str, TableSchema | None]


@dataclass(frozen=True, slots=True)
class LiveFiles:
    """The live files of rows and of dead letters in version `newest`, None for an empty table."""

    newest: Manifest | None
    files: Sequence[DataFile]
    letters: Sequence[DataFile]
    columns: Columns
    # Live paths in the format's log, where other programs may have replaced files.
    readers_see: AbstractSet[str]


def live_now(table: LakeTable) -> LiveFiles:
    """Return the live files, from the manifests and the format's log.

    If another commit comes while they are read, both are read again. Raises CommitConflict if that
    happens each time.
    """
    for _ in range(_TRIES):
        manifests = list(table.history())
        files = table.live_files()
        readers_see = frozenset(table.live_paths())
        newest, _digest = table.latest()
        if (newest.version if newest else 0) == len(manifests):
            columns = {file.path: one.table_schema for one in manifests for file in one.files}
            return LiveFiles(newest, files, live_letters(manifests), columns, readers_see)
    raise CommitConflict(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        f"other commits to {table.store.url} came each time that its files were looked up; nothing "
        "was changed: run it again",
    )


class Rewrite:
    """One commit of kind compaction, which replaces files by others with the same rows.

    `purpose` names the operation in errors. No other commit may change the table's columns after
    `before`. With `typing`, this commit changes them.
    """

    def __init__(
        self,
        engine: Engine,
        before: Manifest,
        purpose: str,
        *,
        typing: LoadTyping | None = None,
        row_group_bytes: int = ROW_GROUP_BYTES,
    ) -> None:
        self.load_id = uuid.uuid4().hex
        self._engine = engine
        self._table = engine.table
        self._before = before
        self._purpose = purpose
        self._typing = typing
        self._row_group_bytes = row_group_bytes
        self._columns = typing.table_schema() if typing else before.table_schema

    def task(
        self, files: tuple[DataFile, ...], start: int, end: int, columns: Columns
    ) -> RewriteTask:
        """Return the task that writes the offsets [start, end) of `files` as one file.

        `columns` has the columns of each file. If they differ from the newest columns, the file's
        rows are decoded again.
        """
        first = files[0]
        stem = self._table.file_stem(self._before.version + 1, self.load_id, first.partition, start)
        letters = is_letters(first)
        if letters:
            stem = letters_path(stem)
        else:
            by = self._before.events.by if self._before.events else "none"
            stem = in_bucket(stem, by, first.event)
        others = {} if letters else {file.path: columns[file.path] for file in files}
        return RewriteTask(
            store=self._table.store,
            path=stem,
            files=files,
            start=start,
            end=end,
            layout=DEAD if letters else layout_of(self._columns),
            row_group_bytes=self._row_group_bytes,
            older={path: one for path, one in others.items() if one != self._columns},
            columns=self._columns,
        )

    def written(self, tasks: Sequence[RewriteTask]) -> list[DataFile]:
        """Run the tasks, and return the files that they wrote, in order of offsets."""
        old = [file for one in tasks for file in one.files]
        with lost_where_removed(self._table, old, self._purpose):
            files = [file for file in self._engine.run(tasks) if file is not None]
        return sorted(files, key=lambda file: (file.partition, file.start))

    def build(self, tasks: Sequence[RewriteTask], files: Sequence[DataFile]) -> Build:
        """Return a function that builds the manifest of `files`, which the tasks have written.

        The function raises CommitConflict if another commit changed the old files or the columns.
        """
        table, typing = self._table, self._typing
        removed = list({file.path: file for one in tasks for file in one.files}.values())

        def build(before: Manifest | None, digest: str | None) -> Manifest:
            assert before is not None, "an empty table has no files to rewrite"
            require_live(table, removed, self._purpose)
            self._require_none_between(tasks)
            if before.table_schema != self._before.table_schema:
                raise lost_to(table, "changed the table's columns", self._purpose)
            if typing is not None and before.positions != self._before.positions:
                raise lost_to(table, "moved its positions", self._purpose)
            return next_manifest(
                before,
                digest,
                load_id=self.load_id,
                topic=before.topic,
                topic_id=before.topic_id,
                cluster_id=before.cluster_id,
                created_ms=time.time_ns() // 1_000_000,
                files=[file for file in files if not is_letters(file)],
                ledgers=(),
                kind="compaction",
                table_schema=typing.table_schema() if typing else None,
                schema_changes=typing.changes if typing else (),
                removed=[file for file in removed if not is_letters(file)],
                dead_letters=[file for file in files if is_letters(file)],
                removed_dead_letters=[file for file in removed if is_letters(file)],
            )

        return build

    def _require_none_between(self, tasks: Sequence[RewriteTask]) -> None:
        """Raise CommitConflict if another commit added a file between files to merge."""
        known = {file.path for one in tasks for file in one.files}
        for file in self._table.live_files():
            if file.path in known:
                continue
            for one in tasks:
                if (file.partition, file.event) != (one.files[0].partition, one.files[0].event):
                    continue
                if file.start < one.end and one.start < file.end:
                    raise lost_to(
                        self._table, f"added {file.path} between its files", self._purpose
                    )


def needs_widening(table: LakeTable, typing: LoadTyping) -> bool:
    """Return whether the table's files must be rewritten before files with these columns are added.

    Delta has one type per column: many of its readers cannot read a table whose files differ in it.
    """
    schema = typing.table_schema()
    return schema is not None and table.must_rewrite(layout_of(schema).schema)


def widen(engine: Engine, before: Manifest, typing: LoadTyping) -> tuple[Manifest, str | None]:
    """Rewrite all files with the columns of `typing`, in a separate commit before that of a load.

    Returns that commit's manifest and digest. Raises OttlaError (CommitConflict if another load
    committed since `before`; then nothing changes).
    """
    live = live_now(engine.table)
    rewrite = Rewrite(engine, before, "load", typing=typing)
    tasks = [
        rewrite.task((file,), file.start, file.end, live.columns)
        for file in live.files
        if file.path in live.readers_see
    ]
    with engine.writing(before.version + 1, rewrite.load_id):
        manifest = engine.commit(rewrite.build(tasks, rewrite.written(tasks)))
    newest, digest = engine.table.latest()
    if newest is None or newest.version != manifest.version:
        raise lost_to(engine.table, "came", "load")
    return newest, digest


def require_live(table: LakeTable, removed: Sequence[DataFile], purpose: str) -> None:
    """Raise CommitConflict if one of the files, of rows or of dead letters, is no longer live."""
    live = {file.path: file for file in table.live_files()}
    if any(map(is_letters, removed)):
        live |= {file.path: file for file in live_letters(table.history())}
    for file in removed:
        if live.get(file.path) != file:
            raise lost_to(table, f"removed {file.path}", purpose)


@contextmanager
def lost_where_removed(table: LakeTable, files: Sequence[DataFile], purpose: str) -> Iterator[None]:
    """Raise CommitConflict in place of a read error if another commit has removed some of `files`.

    An expiry may have deleted the removed files already.
    """
    try:
        yield
    except CommitConflict:
        raise
    except (OSError, OttlaError):
        require_live(table, files, purpose)
        raise


def is_letters(file: DataFile) -> bool:
    """Return whether this is a file of dead letters rather than of rows."""
    return file.path.startswith(f"{DEAD_LETTERS_FOLDER}/")


def lost_to(table: LakeTable, event: str, purpose: str) -> CommitConflict:
    """Return the error for upkeep that another commit has overtaken."""
    return CommitConflict(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        f"another commit to {table.store.url} {event} first; this {purpose} changed nothing: run "
        "it again",
    )
