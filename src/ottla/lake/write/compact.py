"""Compaction: small files of neighbouring offsets become one, proven by the same hash.

    live files → groups → a task for each, which reads and writes → manifest

Offsets, positions, rows and their hash stay the same: the manifest of a compaction is valid only if
the files that it adds to a partition have the rows and the hash of those that it removes. If a
compaction is killed, it is either committed as a whole or not at all.
"""

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Unpack

from ottla.lake.job.options import CompactOptions
from ottla.lake.job.runner import workers_of
from ottla.lake.model.chain import in_bucket
from ottla.lake.model.layout import layout_of
from ottla.lake.model.manifest import DataFile, Manifest, TableSchema, next_manifest
from ottla.lake.model.option import filled
from ottla.lake.store.errors import as_storage_error
from ottla.lake.tables.commit import Steps, removed_on_failure
from ottla.lake.tables.file_check import require_files
from ottla.lake.tables.opening import existing_table, open_table, place_of
from ottla.lake.tables.table import LakeTable, committed_before
from ottla.lake.write.counts import Columns, CountingFiles, counting_now
from ottla.lake.write.file_groups import groups
from ottla.lake.write.rewrite_task import RewriteTask, rewritten
from ottla.lake.write.table_schema import LoadTyping
from ottla.lake.write.upkeep_commit import (
    commit_on_newest,
    is_letters,
    lost_to,
    lost_where_removed,
    require_live,
    require_rows,
)

ROW_GROUP_BYTES = 64 << 20


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

    Tasks run as those of `load` do. `row_group_size` is counted in Arrow's columns. Loads may go on
    meanwhile. Raises OttlaError (LoadLost if another compaction or replacement took the same files
    first; then nothing changes).
    """
    given = filled(CompactOptions, options)
    watch, store_options = given["watch"], given["store_options"]
    target_bytes, row_group_bytes = int(given["target_size"]), int(given["row_group_size"])
    began = time.monotonic()
    run = workers_of(given, watch)
    steps = Steps(watch.on_step)

    with as_storage_error(place_of(target, store_options)):
        # Open an existing table, so that a mistyped target does not create one.
        existing_table(target, store_options)
        table = open_table(target, None, store_options, steps.reached)
        before, _ = table.latest()
        require_rows(before, target)
        counting = counting_now(table)
        chosen = _chosen(counting, target_bytes)
        steps.reached("planned")
        if before is None or not chosen:
            table.remove_orphans()
            return CompactionResult(None, seconds=time.monotonic() - began)
        load_id = uuid.uuid4().hex
        rewrites = _rewrites(table, before, load_id, chosen, counting.columns, row_group_bytes)
        with (
            table.running.mark(load_id),
            removed_on_failure(table, before.version + 1, load_id, steps),
        ):
            with lost_where_removed(table, [file for one in chosen for file in one], "compaction"):
                files = rewritten(rewrites, run)
            steps.reached("files written")
            manifest = commit_on_newest(
                table, compaction_on(table, rewrites, files, load_id, before.table_schema)
            )
        with committed_before(table.store.url, manifest.version):
            table.remove_orphans()
    return CompactionResult(
        manifest,
        len(manifest.removed),
        len(manifest.files),
        sum(file.size_bytes for file in manifest.removed),
        sum(file.size_bytes for file in manifest.files),
        manifest.rows,
        time.monotonic() - began,
    )


def _chosen(counting: CountingFiles, target_bytes: int) -> list[tuple[DataFile, ...]]:
    if counting.newest is None:
        return []
    # Leave files of another program in the table format's log to that program.
    live = [file for file in counting.files if file.path in counting.readers_see]
    return groups(live, counting.columns, counting.newest.table_schema, target_bytes)


def _rewrites(
    table: LakeTable,
    before: Manifest,
    load_id: str,
    chosen: Sequence[tuple[DataFile, ...]],
    columns: Columns,
    row_group_bytes: int,
) -> list[RewriteTask]:
    by = before.events.by if before.events else "none"
    newest = before.table_schema
    return [
        RewriteTask(
            store=table.store,
            path=in_bucket(
                table.file_stem(before.version + 1, load_id, group[0].partition, group[0].start),
                by,
                group[0].event,
            ),
            files=group,
            start=group[0].start,
            end=group[-1].end,
            layout=layout_of(newest),
            row_group_bytes=row_group_bytes,
            older={file.path: columns[file.path] for file in group if columns[file.path] != newest},
            columns=newest,
        )
        for group in chosen
    ]


def compaction_on(
    table: LakeTable,
    rewrites: Sequence[RewriteTask],
    files: Sequence[DataFile],
    load_id: str,
    planned: TableSchema | None,
    typing: LoadTyping | None = None,
) -> Callable[[Manifest, str | None], Manifest]:
    """Return a function that builds the manifest on top of any newest one.

    `files` are those that `rewrites` have written. `planned` are the table's columns; `typing` has
    wider ones if the files introduce them. The function raises LoadLost if others changed the
    columns meanwhile.
    """
    removed = list({file.path: file for one in rewrites for file in one.files}.values())
    in_order = sorted(files, key=lambda file: (file.partition, file.start))

    def make(before: Manifest, digest: str | None) -> Manifest:
        require_live(table, removed, "compaction")
        _require_none_between(table, rewrites)
        if before.table_schema != planned:
            raise lost_to(table, "changed the table's columns", "compaction")
        # During long retries, other loads may have removed the files as orphans.
        require_files(table.store, in_order)
        return next_manifest(
            before,
            digest,
            load_id=load_id,
            topic=before.topic,
            topic_id=before.topic_id,
            cluster_id=before.cluster_id,
            created_ms=time.time_ns() // 1_000_000,
            files=[file for file in in_order if not is_letters(file)],
            ledgers=(),
            kind="compaction",
            table_schema=typing.table_schema() if typing else None,
            schema_changes=typing.changes if typing else (),
            removed=[file for file in removed if not is_letters(file)],
            dead_letters=[file for file in in_order if is_letters(file)],
            removed_dead_letters=[file for file in removed if is_letters(file)],
        )

    return make


def _require_none_between(table: LakeTable, rewrites: Sequence[RewriteTask]) -> None:
    """Raise LoadLost if a file has been added between files that are merged into one."""
    known = {file.path for one in rewrites for file in one.files}
    for file in table.live_files():
        if file.path in known:
            continue
        for one in rewrites:
            if (file.partition, file.event) != (one.files[0].partition, one.files[0].event):
                continue
            if file.start < one.end and one.start < file.end:
                raise lost_to(table, f"added {file.path} between its files", "compaction")
