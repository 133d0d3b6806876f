"""Expiry deletes what no kept version has, and nothing else; the proof stays whole."""

import os
import signal
from pathlib import Path

import pytest
from deltalake import DeltaTable

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake.model.manifest import Manifest
from ottla.lake.tables.formats import Format
from ottla.lake.tables.opening import open_table
from tests.unit.lake.forked import exit_code_of
from tests.unit.lake.logged import readers
from tests.unit.lake.upkeep.test_compacting import FORMATS, loaded, proven, table_rows


def compacted(folder: Path) -> Manifest:
    manifest = ottla.lake.compact(str(folder), master="here").manifest
    assert manifest is not None
    return manifest


def all_files(folder: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "running" not in path.parts
    }


@FORMATS
def test_old_files_go_and_the_table_stays_proven(tmp_path: Path, kind: Format) -> None:
    loaded(tmp_path, kind)
    hashed = proven(tmp_path).hash
    old = {file.path for file in compacted(tmp_path).removed}
    assert proven(tmp_path).expired == []
    expired = ottla.lake.expire(str(tmp_path), older_than_ms=0)

    assert (expired.oldest, set(expired.removed), expired.kept) == (4, old, ())
    assert not set(os.listdir(tmp_path / "data")) & {Path(one).name for one in old}
    assert (proven(tmp_path).hash, proven(tmp_path).loads) == (hashed, 3)
    assert proven(tmp_path).expired == [(1, 3)]
    assert table_rows(tmp_path, kind) == readers.expected(2, 30)
    assert ottla.lake.expire(str(tmp_path), older_than_ms=0).removed == ()

    loaded(tmp_path, kind, times=1)
    assert open_table(str(tmp_path)).remove_orphans() == []
    compacted(tmp_path)
    assert table_rows(tmp_path, kind) == readers.expected(2, 40)
    assert (proven(tmp_path).loads, proven(tmp_path).expired) == (4, [(1, 3)])


@FORMATS
def test_within_the_window_nothing_goes(tmp_path: Path, kind: Format) -> None:
    loaded(tmp_path, kind)
    compacted(tmp_path)
    before = sorted(os.listdir(tmp_path / "data"))
    for settings in ({}, {"older_than_ms": 7 * 24 * 3600 * 1000}, {"keep": 4}, {"keep": 1 << 40}):
        assert ottla.lake.expire(str(tmp_path), **settings).removed == ()
        assert sorted(os.listdir(tmp_path / "data")) == before


@FORMATS
def test_a_dry_run_says_what_would_go_and_changes_no_byte(tmp_path: Path, kind: Format) -> None:
    loaded(tmp_path, kind)
    compacted(tmp_path)
    before = all_files(tmp_path)
    said = ottla.lake.expire(str(tmp_path), keep=1, dry_run=True)
    assert all_files(tmp_path) == before
    done = ottla.lake.expire(str(tmp_path), keep=1)
    assert len(said.removed) == 6
    assert (said.oldest, said.removed, said.removed_bytes, said.kept) == (
        *(done.oldest, done.removed),
        *(done.removed_bytes, done.kept),
    )


@FORMATS
def test_so_many_versions_are_kept(tmp_path: Path, kind: Format) -> None:
    """Version 2 compacts 1, 4 compacts 2 and 3: with 4 and 3 kept, files of 1 go alone."""
    for _ in range(2):
        loaded(tmp_path, kind, times=2)
        compacted(tmp_path)
    assert len(ottla.lake.expire(str(tmp_path), keep=3).removed) == 4
    assert proven(tmp_path).expired == [(1, 2)]
    both = ottla.lake.expire(str(tmp_path), keep=1, older_than_ms=7 * 24 * 3600 * 1000)
    assert both.removed == ()
    assert len(ottla.lake.expire(str(tmp_path), keep=1).removed) == 6
    assert proven(tmp_path).expired == [(1, 5)]
    assert table_rows(tmp_path, kind) == readers.expected(2, 40)


@pytest.mark.parametrize("kept", [1, 3, 4, 6])
def test_kept_snapshots_of_iceberg_can_be_read(tmp_path: Path, kept: int) -> None:
    for _ in range(3):
        loaded(tmp_path, "iceberg", times=2)
        compacted(tmp_path)
    snapshots = readers.iceberg(tmp_path).snapshots()
    expected = {
        one.snapshot_id: readers.iceberg(tmp_path).scan(snapshot_id=one.snapshot_id).count()
        for one in snapshots[-kept:]
    }
    ottla.lake.expire(str(tmp_path), keep=kept)

    table = readers.iceberg(tmp_path)
    assert {one.snapshot_id for one in table.snapshots()} == expected.keys()
    for snapshot_id, count in expected.items():
        found = table.scan(snapshot_id=snapshot_id, selected_fields=("offset",)).to_arrow()
        assert found.num_rows == count
    named = {
        manifest.manifest_path for one in table.snapshots() for manifest in one.manifests(table.io)
    }
    named |= {one.manifest_list for one in table.snapshots()}
    there = {path.name for path in (tmp_path / "metadata").glob("*.avro")}
    assert there == {name.rpartition("/")[2] for name in named}
    assert table_rows(tmp_path, "iceberg") == readers.expected(2, 60)
    proven(tmp_path)


def test_a_tagged_snapshot_of_iceberg_stays_with_its_files(tmp_path: Path) -> None:
    loaded(tmp_path, "iceberg", times=2)
    table = readers.iceberg(tmp_path)
    tagged = table.current_snapshot()
    assert tagged is not None
    table.manage_snapshots().create_tag(tagged.snapshot_id, "audit").commit()
    compacted(tmp_path)
    done = ottla.lake.expire(str(tmp_path), keep=1)
    assert (done.removed, len(done.kept)) == ((), 4)
    scan = readers.iceberg(tmp_path).scan(snapshot_id=tagged.snapshot_id)
    assert scan.to_arrow().num_rows == 40
    proven(tmp_path)


def test_kept_versions_of_delta_have_their_files(tmp_path: Path) -> None:
    versions = []
    for _ in range(3):
        loaded(tmp_path, "delta", times=2)
        compacted(tmp_path)
        versions.append(DeltaTable(str(tmp_path)).version())
    ottla.lake.expire(str(tmp_path), keep=4)

    assert len(os.listdir(tmp_path / "data")) == 8  # Of versions 6, 7, 8 and 9, two of each.
    for number in range(versions[1], versions[2] + 1):
        for uri in DeltaTable(str(tmp_path), version=number).file_uris():
            assert Path(uri.removeprefix("file://")).exists()
    proven(tmp_path)


def test_a_delta_table_that_says_how_long_files_stay_is_obeyed(tmp_path: Path) -> None:
    loaded(tmp_path, "delta")
    compacted(tmp_path)
    table = DeltaTable(str(tmp_path))
    table.alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 2 days"})
    done = ottla.lake.expire(str(tmp_path), keep=1)
    assert (done.removed, len(done.kept)) == ((), 6)
    table.alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 0 days"})
    assert len(ottla.lake.expire(str(tmp_path), keep=1).removed) == 6
    assert DeltaTable(str(tmp_path)).vacuum(retention_hours=48) == []
    proven(tmp_path)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_what_other_programs_have_is_left_to_them(tmp_path: Path, kind: Format) -> None:
    """Files that count by the log alone, or that others removed from it, go by its own means."""
    loaded(tmp_path, kind)
    if kind == "delta":
        DeltaTable(str(tmp_path)).optimize.compact()
    else:
        table = readers.iceberg(tmp_path)
        table.overwrite(table.scan().to_arrow())
    files = sorted(os.listdir(tmp_path / "data"))
    assert ottla.lake.expire(str(tmp_path), older_than_ms=0).removed == ()
    assert sorted(os.listdir(tmp_path / "data")) == files
    assert ottla.lake.verify(str(tmp_path), bootstrap=None).problems == []


def test_where_no_table_is_none_is_made(tmp_path: Path) -> None:
    with pytest.raises(OttlaError, match="no table"):
        ottla.lake.expire(str(tmp_path / "mistyped"), older_than_ms=0)
    assert not (tmp_path / "mistyped").exists()


@pytest.mark.parametrize("settings", [{"older_than_ms": -1}, {"keep": 0}])
def test_no_words_let_the_newest_version_go(tmp_path: Path, settings: dict[str, int]) -> None:
    loaded(tmp_path)
    with pytest.raises(OttlaError, match="one of them is always kept"):
        ottla.lake.expire(str(tmp_path), **settings)


KILLED = """
import os, signal
import ottla.lake
def kill(step):
    if step == {step!r}:
        os.kill(os.getpid(), signal.SIGKILL)
ottla.lake.expire({folder!r}, keep=1, on_step=kill)
"""


@FORMATS
@pytest.mark.parametrize("step", ["planned", "versions let go", "file deleted"])
def test_killed_at_any_step_it_is_run_again(tmp_path: Path, kind: Format, step: str) -> None:
    """kill -9 after each step: the table reads and proves as before, and the next one ends it."""
    loaded(tmp_path, kind)
    compacted(tmp_path)
    code = KILLED.format(step=step, folder=str(tmp_path))
    assert exit_code_of(code) == -signal.SIGKILL
    assert table_rows(tmp_path, kind) == readers.expected(2, 30)
    assert proven(tmp_path).expired == ([(1, 3)] if step == "file deleted" else [])

    ottla.lake.expire(str(tmp_path), keep=1)
    assert len(os.listdir(tmp_path / "data")) == 2
    assert table_rows(tmp_path, kind) == readers.expected(2, 30)
    assert proven(tmp_path).expired == [(1, 3)]
