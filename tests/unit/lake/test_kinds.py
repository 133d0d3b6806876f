"""Commits that are no loads: each kind has laws, and a manifest that breaks one is not believed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake.job.output import ParquetOutput
from ottla.lake.model.manifest import DataFile, Kind, Manifest, from_bytes, next_manifest, to_bytes
from ottla.lake.tables.opening import open_table
from ottla.lake.tables.own import OwnTable
from ottla.lake.tables.table import CommitConflict, WriterFenced
from ottla.ledger.partition import PartitionLedger
from tests.unit.lake.tables import TOPIC, commit, data_file, forge, manifest_path, rows, written


@pytest.fixture
def table(tmp_path: Path) -> OwnTable:
    """Two loads of ten rows of each of two partitions."""
    table = open_table(str(tmp_path))
    for _ in range(2):
        commit(table, 10)
    return table


def following(table: OwnTable, kind: Kind, **fields: Any) -> Manifest:
    before, digest = table.latest()
    given = {"files": (), "ledgers": (), "load_id": "c" * 32, **fields}
    return next_manifest(
        before, digest, topic=TOPIC, topic_id=None, cluster_id="c", created_ms=1, kind=kind, **given
    )


def file_of(table: OwnTable, partition: int, start: int, end: int) -> DataFile:
    path = f"{table.file_stem(3, 'c' * 32, partition, start)}-a.parquet"
    output = ParquetOutput(table.store, path)
    output.write(rows(partition, start, end))
    output.finish()
    return data_file(path, partition, start, end, output)


def compaction(table: OwnTable) -> Manifest:
    """Both files of partition 0 become one."""
    removed = [file for file in table.live_files() if file.partition == 0]
    return following(table, "compaction", files=[file_of(table, 0, 0, 20)], removed=removed)


def replacement(table: OwnTable) -> Manifest:
    """The second file of partition 0 is written again."""
    removed = [file for file in table.live_files() if (file.partition, file.start) == (0, 10)]
    ledgers = [PartitionLedger(0, 10, 20, loaded=10)]
    files = [file_of(table, 0, 10, 20)]
    return following(table, "replacement", files=files, removed=removed, ledgers=ledgers)


def epoch(table: OwnTable) -> Manifest:
    return following(table, "epoch")


@pytest.mark.parametrize("made", [compaction, replacement, epoch])
def test_what_counts_stays_right_through_every_kind(
    table: OwnTable, made: Callable[[OwnTable], Manifest]
) -> None:
    """Positions and sums are those of the loads; later loads and removals go on from there."""
    manifest = made(table)
    table.commit(manifest)
    newest, _ = table.latest()
    assert newest == manifest
    assert (newest.positions, newest.total_rows) == ({0: 20, 1: 20}, 40)
    assert sum(file.rows for file in table.live_files()) == 40
    assert not {file.path for file in table.live_files()} & {f.path for f in manifest.removed}
    assert table.remove_orphans() == []
    commit(table, 5)
    assert sum(file.rows for file in table.live_files()) == 50


CHANGES: dict[str, tuple[Callable[[OwnTable], Manifest], Callable[[dict[str, Any]], object], str]]
CHANGES = {
    "load removes": (compaction, lambda m: m.update(kind="load"), "which no load does"),
    "compaction loses a row": (
        compaction,
        lambda m: m["files"][0].update(rows=19),
        "are not those that it removes",
    ),
    "compaction alters a row": (
        compaction,
        lambda m: m["files"][0].update(hash="0" * 32),
        "are not those that it removes",
    ),
    "compaction of other files": (compaction, lambda m: m["removed"].pop(), "are not those"),
    "replacement of another range": (
        replacement,
        lambda m: m["ledgers"][0].update(start=11, loaded=9),
        "outside the range it replaces",
    ),
    "replacement behind the table": (
        replacement,
        lambda m: m["ledgers"][0].update(end=21, deleted=1),
        "but the loads before it end at 20",
    ),
    "replacement of nothing": (
        replacement,
        lambda m: m["ledgers"].pop(),
        "and replaces none of it",
    ),
    "epoch with a file": (
        replacement,
        lambda m: m.update(kind="epoch", writer_epoch=1),
        "which no change of the writer epoch has",
    ),
    "epoch that rises by two": (
        epoch,
        lambda m: m.update(writer_epoch=2),
        "its writer epoch is 2, and 1 by",
    ),
    "epoch that stays": (epoch, lambda m: m.update(writer_epoch=0), "its writer epoch is 0"),
    "dead letters uncounted": (
        replacement,
        lambda m: m["ledgers"][0].update(dead_letters=1, loaded=9),
        "does not hold the dead letters that partition 0 counts",
    ),
}


@pytest.mark.parametrize(("made", "change", "said"), CHANGES.values(), ids=CHANGES.keys())
def test_a_forged_manifest_breaks_a_law_of_its_kind(
    table: OwnTable,
    made: Callable[[OwnTable], Manifest],
    change: Callable[[dict[str, Any]], object],
    said: str,
) -> None:
    table.commit(made(table))
    forge(manifest_path(table.store.root, 3), change)
    assert said in "\n".join(ottla.lake.verify(str(table.store.root), bootstrap=None).problems)
    with pytest.raises(OttlaError, match=said):
        table.latest()


def test_a_file_is_removed_once(table: OwnTable) -> None:
    """Sums alone would not show which of two equal files counts."""
    table.commit(compaction(table))
    gone = table.history()
    next(gone)
    old = next(gone).files[0]
    table.commit(
        replace(
            following(table, "compaction", files=[replace(old, path="data/x")], removed=[old]),
            version=4,
        )
    )
    found = ottla.lake.verify(str(table.store.root), bootstrap=None)
    assert f"it removes {old.path}, which does not count like that" in "".join(found.problems)
    with pytest.raises(OttlaError, match="which does not count like that"):
        table.live_files()


def test_a_writer_that_was_taken_over_is_fenced(tmp_path: Path) -> None:
    """It planned with the epoch that it found; another one has started since."""
    table = open_table(str(tmp_path))
    commit(table, 10)
    late = written(table, 5, "d" * 32)
    started = open_table(str(tmp_path))
    started.commit(following(started, "epoch"))
    with pytest.raises(WriterFenced, match=r"epoch 1 has taken .* which has epoch 0"):
        table.commit(late)
    commit(table, 5)
    newest, _ = table.latest()
    assert newest is not None
    assert (newest.writer_epoch, newest.total_rows) == (1, 30)


def test_a_load_that_lost_to_its_own_epoch_is_no_fenced_writer(tmp_path: Path) -> None:
    table = open_table(str(tmp_path))
    late = written(table, 5, "d" * 32)
    commit(table, 10)
    with pytest.raises(CommitConflict):
        table.commit(late)


def test_new_fields_survive_the_disk(table: OwnTable) -> None:
    manifest = replace(
        compaction(table),
        overridden=("a file was missing",),
        table_schema=ottla.lake.model.manifest.TableSchema(1, ({"name": "x", "type": "int64"},)),
        schema_changes=(ottla.lake.model.manifest.SchemaChange("x added", {0: 5, 1: 7}),),
    )
    assert from_bytes(to_bytes(manifest), "x")[0] == manifest
