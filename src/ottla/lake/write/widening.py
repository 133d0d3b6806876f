"""Rewrites all files of a table in wider columns, for formats with one type per column.

Delta is such a format: many of its readers cannot read a table whose files differ in the type of a
column. So a load with wider columns first makes a separate commit that rewrites the rows of all
files in the new columns. That commit is proven in the same way as a compaction.
"""

import uuid

from ottla.lake.job.task import Runner
from ottla.lake.model.chain import in_bucket
from ottla.lake.model.layout import layout_of
from ottla.lake.model.manifest import Manifest
from ottla.lake.tables.commit import Steps, removed_on_failure
from ottla.lake.tables.table import LakeTable
from ottla.lake.write.compact import ROW_GROUP_BYTES, compaction_on
from ottla.lake.write.counts import counting_now
from ottla.lake.write.rewrite_task import RewriteTask, rewritten
from ottla.lake.write.table_schema import LoadTyping
from ottla.lake.write.upkeep_commit import commit_on_newest, lost_to


def needs_widening(table: LakeTable, typing: LoadTyping | None) -> bool:
    """Return whether the table's files must be rewritten before files with these columns."""
    schema = typing.table_schema() if typing else None
    return schema is not None and table.must_rewrite(layout_of(schema).schema)


def widen(
    table: LakeTable, before: Manifest, typing: LoadTyping, run: Runner, steps: Steps
) -> tuple[Manifest, str | None]:
    """Rewrite all files in the columns of `typing`. Return that commit's manifest and digest.

    Raises OttlaError (LoadLost if another load committed since `before`; then nothing changes).
    """
    counting = counting_now(table)
    schema, load_id = typing.table_schema(), uuid.uuid4().hex
    by = before.events.by if before.events else "none"
    rewrites = [
        RewriteTask(
            store=table.store,
            path=in_bucket(
                table.file_stem(before.version + 1, load_id, file.partition, file.start),
                by,
                file.event,
            ),
            files=(file,),
            start=file.start,
            end=file.end,
            layout=layout_of(schema),
            row_group_bytes=ROW_GROUP_BYTES,
            older={file.path: counting.columns[file.path]},
            columns=schema,
        )
        for file in counting.files
        if file.path in counting.readers_see
    ]

    def on_top(newest: Manifest, digest: str | None) -> Manifest:
        if newest.positions != before.positions:
            raise lost_to(table, "moved its positions", "load")
        return make(newest, digest)

    with (
        table.running.mark(load_id),
        removed_on_failure(table, before.version + 1, load_id, steps),
    ):
        files = rewritten(rewrites, run)
        make = compaction_on(table, rewrites, files, load_id, before.table_schema, typing)
        manifest = commit_on_newest(table, on_top)
    # The steps so far were those of this commit; the load's own commit follows.
    steps.done.clear()
    newest, digest = table.latest()
    if newest is None or newest.version != manifest.version:
        raise lost_to(table, "came", "load")
    return newest, digest
