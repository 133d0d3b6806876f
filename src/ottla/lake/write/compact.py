"""Compaction: merges small files of neighbouring offsets, and proves that no row changed.

    live files → groups → a task for each, which reads and writes → manifest

Offsets, positions, rows and their hash stay the same: the manifest of a compaction is valid only if
the files that it adds to a partition have the same rows and hash as the files that it removes. If a
compaction is killed, it is either committed as a whole or not at all.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Unpack

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.job.options import CompactOptions
from ottla.lake.model.layout import layout_of
from ottla.lake.model.manifest import DataFile, Manifest, TableSchema
from ottla.lake.model.option import filled
from ottla.lake.write.engine import opened
from ottla.lake.write.rewrite import Columns, Rewrite, live_now

# A file larger than this fraction of the target size is not merged.
_SMALL = 0.75


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The result of a compaction. `manifest` is None if there was nothing to compact."""

    manifest: Manifest | None
    removed: int = 0
    added: int = 0
    removed_bytes: int = 0
    added_bytes: int = 0
    rows: int = 0
    seconds: float = 0.0


def compact(target: str, **options: Unpack[CompactOptions]) -> CompactionResult:
    """Merge small neighbouring files of the table in `target` into files of `target_size`.

    Tasks run as in `load`. `row_group_size` is in bytes of Arrow's columns. Loads may run at the
    same time. Raises OttlaError (CommitConflict if another compaction or replacement took the same
    files first; then nothing changes).
    """
    given = filled(CompactOptions, options)
    target_bytes, row_group_bytes = int(given["target_size"]), int(given["row_group_size"])
    began = time.monotonic()
    with opened(target, given, must_exist=True) as engine:
        table = engine.table
        before, _ = table.latest()
        _require_rows(before, target)
        live = live_now(table)
        # Files that another program has replaced in the format's log are not compacted.
        files = [file for file in live.files if file.path in live.readers_see]
        newest = live.newest.table_schema if live.newest else None
        chosen = groups(files, live.columns, newest, target_bytes)
        engine.steps.reached("planned")
        if before is None or not chosen:
            table.remove_orphans()
            return CompactionResult(None, seconds=time.monotonic() - began)
        rewrite = Rewrite(engine, before, "compaction", row_group_bytes=row_group_bytes)
        tasks = [rewrite.task(one, one[0].start, one[-1].end, live.columns) for one in chosen]
        with engine.writing(before.version + 1, rewrite.load_id):
            written = rewrite.written(tasks)
            engine.steps.reached("files written")
            manifest = engine.commit(rewrite.build(tasks, written))
        engine.remove_orphans_after(manifest)
    return CompactionResult(
        manifest,
        len(manifest.removed),
        len(manifest.files),
        sum(file.size_bytes for file in manifest.removed),
        sum(file.size_bytes for file in manifest.files),
        manifest.rows,
        time.monotonic() - began,
    )


def _require_rows(newest: Manifest | None, target: str) -> None:
    """Refuse a changelog table: its files are buckets of keys, and each run rewrites them."""
    if newest is not None and newest.changelog is not None:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"{target} is a changelog table: its files are not of ranges of offsets, and `ottla "
            "lake changelog` replaces them itself",
        )


def groups(
    live: Sequence[DataFile],
    columns: Columns,
    newest: TableSchema | None,
    target_bytes: int,
) -> list[tuple[DataFile, ...]]:
    """Return groups of two files or more, each of at most `target_bytes`.

    No live file has offsets between those of a group's files. Files of different event-time buckets
    are never mixed. Files with older columns get the newest columns; they are left out if either
    the old or the new columns, but not both, include the raw columns.
    """
    keep_raw = layout_of(newest).keep_raw
    small = {
        file.path
        for file in live
        if file.size_bytes <= _SMALL * target_bytes
        and layout_of(columns[file.path]).keep_raw == keep_raw
    }
    in_order = sorted(live, key=lambda file: (file.partition, file.event, file.start))
    return [
        group
        for _, of_partition in groupby(in_order, key=lambda file: (file.partition, file.event))
        for is_small, run in groupby(of_partition, key=lambda file: file.path in small)
        if is_small
        for group in _filled(run, target_bytes)
        if len(group) > 1
    ]


def _filled(run: Iterator[DataFile], target_bytes: int) -> Iterator[tuple[DataFile, ...]]:
    group: list[DataFile] = []
    size = 0
    for file in run:
        if group and size + file.size_bytes > target_bytes:
            yield tuple(group)
            group, size = [], 0
        group.append(file)
        size += file.size_bytes
    yield tuple(group)
