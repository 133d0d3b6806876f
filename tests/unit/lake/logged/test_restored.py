"""No load builds on a table whose newest loads another program rolled back."""

from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake.tables.opening import existing_table, open_table
from ottla.lake.tables.table import foundation
from tests.unit.lake.logged.test_shared import Place, of_others
from tests.unit.lake.tables import commit, written

SAID = (
    r"another program restored version 1, from before load 2 \(Delta's log entry 3\): 2 files of "
    r"loads with 20 rows left the table; load the offsets again into a new table "
    r"\(--from 0:10,1:10\), or restore version 2, or a later one from before the restore"
)


def loaded(folder: Path) -> DeltaTable:
    """The versions 1 and 2 of the log are loads of ten rows of each of two partitions."""
    table = open_table(str(folder), "delta")
    commit(table, 10)
    commit(table, 10)
    return DeltaTable(str(folder))


def rows_in(folder: Path) -> int:
    return int(DeltaTable(str(folder)).to_pyarrow_table().num_rows)


def refused(folder: Path, said: str) -> None:
    before = DeltaTable(str(folder)).version()
    with pytest.raises(OttlaError, match=said):
        commit(open_table(str(folder)), 10)
    assert DeltaTable(str(folder)).version() == before


def test_restore_of_a_version_before_the_newest_load_is_refused_with_what_is_missing(
    tmp_path: Path,
) -> None:
    loaded(tmp_path).restore(1)
    refused(tmp_path, SAID)
    with pytest.raises(OttlaError, match=SAID):
        existing_table(str(tmp_path)).live_files()


def test_restore_in_a_table_of_others_is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path, "delta")
    commit(place.open(), 10)
    DeltaTable(str(place.folder)).restore(0)
    refused(place.folder, "restored version 0, from before load 1 .* with 20 rows left the table")


def test_restore_forward_takes_the_restore_back(tmp_path: Path) -> None:
    loaded(tmp_path).restore(1)
    DeltaTable(str(tmp_path)).restore(2)
    commit(open_table(str(tmp_path)), 10)
    assert rows_in(tmp_path) == 60


def test_commits_after_the_restore_do_not_hide_it(tmp_path: Path) -> None:
    loaded(tmp_path).restore(1)
    DeltaTable(str(tmp_path)).optimize.compact()
    refused(tmp_path, SAID)


def test_a_load_of_which_no_file_is_known_does_not_hide_the_restore(tmp_path: Path) -> None:
    """The newest load may have no files, as that of a writer that takes a table over."""
    table = open_table(str(tmp_path), "delta")
    commit(table, 10)
    commit(table, 10)
    commit(table, 0, partitions=0)
    DeltaTable(str(tmp_path)).restore(1)
    refused(tmp_path, "restored version 1, from before load 3 .*with 20 rows left the table")


def test_restore_of_a_version_after_the_newest_load_is_none_of_it(tmp_path: Path) -> None:
    """The files of loads are replaced by then, with the same rows."""
    table = loaded(tmp_path)
    table.optimize.compact()
    DeltaTable(str(tmp_path)).delete("offset = 3")
    DeltaTable(str(tmp_path)).restore(3)
    commit(open_table(str(tmp_path)), 10)
    assert rows_in(tmp_path) == 60
    assert ottla.lake.verify(str(tmp_path), bootstrap=None).problems == []


def test_restore_of_files_before_others_compacted_them_is_refused_if_a_load_is_lost(
    tmp_path: Path,
) -> None:
    loaded(tmp_path).optimize.compact()
    DeltaTable(str(tmp_path)).restore(1)
    refused(tmp_path, "restored version 1, from before load 2")


def test_restore_of_files_before_a_compaction_of_ottla_loses_no_row(tmp_path: Path) -> None:
    loaded(tmp_path)
    ottla.lake.compact(str(tmp_path), master="here")
    DeltaTable(str(tmp_path)).restore(2)
    commit(open_table(str(tmp_path)), 10)
    assert rows_in(tmp_path) == 60


def test_restore_between_plan_and_commit_is_refused(tmp_path: Path) -> None:
    loaded(tmp_path)
    table = open_table(str(tmp_path))
    manifest = written(table, 10, "f" * 32)
    DeltaTable(str(tmp_path)).restore(1)
    with pytest.raises(OttlaError, match="another program restored version 1 of the Delta table"):
        table.commit(manifest)
    assert rows_in(tmp_path) == 20


def test_override_does_not_pass_over_a_restore(tmp_path: Path) -> None:
    """The loss would be on record nowhere but in what verify says."""
    loaded(tmp_path).restore(1)
    assert foundation(open_table(str(tmp_path))) is None


def by_rollback(place: Place, first: int) -> None:
    place.catalog.load_table("shop.orders").manage_snapshots().rollback_to_snapshot(first).commit()


def by_rollback_and_more(place: Place, first: int) -> None:
    by_rollback(place, first)
    place.catalog.load_table("shop.orders").append(of_others(1))


@pytest.mark.parametrize("change", [by_rollback, by_rollback_and_more])
def test_rollback_of_iceberg_to_rows_of_others_is_refused_after_older_snapshots_expired(
    tmp_path: Path, change: Callable[[Place, int], None]
) -> None:
    """No snapshot of a load counts then, as if all of them had expired."""
    place = Place(tmp_path, "iceberg")
    table = place.catalog.load_table("shop.orders")
    old = table.current_snapshot().snapshot_id
    table.append(of_others(2))
    first = table.current_snapshot().snapshot_id
    commit(place.open(), 10)
    place.catalog.load_table("shop.orders").maintenance.expire_snapshots().by_ids([old]).commit()
    change(place, first)
    with pytest.raises(OttlaError, match="none of its current history does"):
        commit(open_table(str(place.folder), None, place.options), 10)


def test_tagged_snapshot_of_a_load_whose_followers_expired_is_no_rollback(tmp_path: Path) -> None:
    place = Place(tmp_path, "iceberg")
    commit(place.open(), 10)
    table = place.catalog.load_table("shop.orders")
    load = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_tag(load, "kept").commit()
    table.append(of_others(1))
    between = table.current_snapshot().snapshot_id
    table.append(of_others(1))
    place.catalog.load_table("shop.orders").maintenance.expire_snapshots().by_ids(
        [between]
    ).commit()
    commit(open_table(str(place.folder), None, place.options), 10)
    assert place.rows() == 3 + 2 + 40
