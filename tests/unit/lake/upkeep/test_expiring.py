"""Expiry deletes what no version in the window has, and nothing else; the proof stays whole."""

import os
from pathlib import Path

import pytest
from deltalake import DeltaTable

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake.manifest import Manifest
from ottla.lake.tables.formats import Format
from ottla.lake.tables.opening import open_table
from ottla.lake.upkeep.expiring import expire_before
from tests.unit.lake.logged import readers
from tests.unit.lake.upkeep.test_compacting import FORMATS, loaded, proven, table_rows

LATER_MS = 1 << 50


def compacted(folder: Path) -> Manifest:
    manifest = ottla.lake.compact(str(folder), here=True).manifest
    assert manifest is not None
    return manifest


@FORMATS
def test_old_files_go_and_the_table_stays_proven(tmp_path: Path, kind: Format) -> None:
    loaded(tmp_path, kind)
    hashed = proven(tmp_path).hash
    old = {file.path for file in compacted(tmp_path).removed}
    expired = ottla.lake.expire(str(tmp_path), older_than_ms=0)

    assert (set(expired.removed), expired.kept) == (old, ())
    assert not {name for name in os.listdir(tmp_path / "data")} & {Path(one).name for one in old}
    assert (proven(tmp_path).hash, proven(tmp_path).loads) == (hashed, 4)
    assert table_rows(tmp_path, kind) == readers.expected(2, 30)
    assert ottla.lake.expire(str(tmp_path), older_than_ms=0).removed == ()

    loaded(tmp_path, kind, times=1)
    assert open_table(str(tmp_path)).remove_orphans() == []
    compacted(tmp_path)
    assert table_rows(tmp_path, kind) == readers.expected(2, 40)
    assert proven(tmp_path).loads == 6


@FORMATS
def test_within_the_window_nothing_goes(tmp_path: Path, kind: Format) -> None:
    loaded(tmp_path, kind)
    compacted(tmp_path)
    files = sorted(os.listdir(tmp_path / "data"))
    assert ottla.lake.expire(str(tmp_path), older_than_ms=7 * 24 * 3600 * 1000).removed == ()
    assert sorted(os.listdir(tmp_path / "data")) == files


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_snapshots_of_iceberg_in_the_window_can_be_read(tmp_path: Path, kept: int) -> None:
    """Also the one that was made before it and was still current when it began."""
    for _ in range(3):
        loaded(tmp_path, "iceberg", times=2)
        compacted(tmp_path)
    snapshots = readers.iceberg(tmp_path).snapshots()
    expected = {
        one.snapshot_id: readers.iceberg(tmp_path).scan(snapshot_id=one.snapshot_id).count()
        for one in snapshots[-1 - kept :]
    }
    # A millisecond before the oldest of those made in the window: its predecessor was current.
    expire_before(open_table(str(tmp_path)), snapshots[-kept].timestamp_ms - 1)

    table = readers.iceberg(tmp_path)
    left = {one.snapshot_id for one in table.snapshots()}
    assert expected.keys() <= left
    for snapshot_id in left:
        found = table.scan(snapshot_id=snapshot_id, selected_fields=("offset",)).to_arrow()
        assert expected.get(snapshot_id, found.num_rows) == found.num_rows
    assert table_rows(tmp_path, "iceberg") == readers.expected(2, 60)
    proven(tmp_path)


def test_versions_of_delta_in_the_window_have_their_files(tmp_path: Path) -> None:
    versions: list[tuple[int, int]] = []
    for _ in range(3):
        loaded(tmp_path, "delta", times=2)
        manifest = compacted(tmp_path)
        versions.append((DeltaTable(str(tmp_path)).version(), manifest.created_ms))
    version, created_ms = versions[1]
    expire_before(open_table(str(tmp_path)), created_ms)

    assert len(os.listdir(tmp_path / "data")) == 2 * (3 + 2)
    for number in range(version, DeltaTable(str(tmp_path)).version() + 1):
        for uri in DeltaTable(str(tmp_path), version=number).file_uris():
            assert Path(uri.removeprefix("file://")).exists()
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
