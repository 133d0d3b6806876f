"""Commits a load again if compaction or replacement took its version, on top of that commit.

Compaction and replacement do not advance positions, so the offsets that a load has read are still
the next ones. Of two loads, one still fails.
"""

from ottla.lake.model.manifest import Manifest, next_manifest
from ottla.lake.tables.file_check import require_files
from ottla.lake.tables.table import LakeTable, LoadLost

_TRIES = 20
_UPKEEP = frozenset({"compaction", "replacement"})


def commit_over_upkeep(table: LakeTable, before: Manifest | None, manifest: Manifest) -> Manifest:
    """Commit `manifest`, planned on `before`, rebased on upkeep commits if needed; return it.

    Raises LoadLost if another load committed first or upkeep changed the table's columns, and
    FencedWriter as the table does.
    """
    for _ in range(_TRIES - 1):
        try:
            table.commit(manifest)
        except LoadLost as lost:
            manifest = _renewed(table, before, manifest, lost)
            continue
        return manifest
    table.commit(manifest)
    return manifest


def _renewed(
    table: LakeTable, before: Manifest | None, manifest: Manifest, lost: LoadLost
) -> Manifest:
    newest, digest = table.latest()
    # Read these after the newest manifest, so that every manifest up to it is checked.
    since = [one for one in table.history() if one.version >= manifest.version]
    if before is None or newest is None or manifest.overridden:
        raise lost
    if not since or any(one.kind not in _UPKEEP for one in since):
        raise lost
    if (newest.table_schema, newest.positions) != (before.table_schema, before.positions):
        raise lost
    require_files(table.store, (*manifest.files, *manifest.dead_letters))
    return next_manifest(
        newest,
        digest,
        load_id=manifest.load_id,
        topic=manifest.topic,
        topic_id=manifest.topic_id,
        cluster_id=manifest.cluster_id,
        created_ms=manifest.created_ms,
        files=manifest.files,
        ledgers=manifest.ledgers,
        skipped=manifest.skipped,
        accepted_loss=manifest.accepted_loss,
        table_schema=manifest.table_schema,
        schema_changes=manifest.schema_changes,
        dead_letters=manifest.dead_letters,
        events=manifest.events,
    )
