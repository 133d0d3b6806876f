"""What a load does with a table's log does not grow with the number of loads."""

from pathlib import Path

from deltalake import CommitProperties, Transaction

import ottla.lake
from ottla.lake.store.local import LocalStore
from ottla.lake.tables.delta import DeltaLog
from ottla.lake.tables.format_log import NamedLoad
from ottla.lake.tables.iceberg_entries import KEEP
from ottla.lake.tables.opening import open_table
from tests.unit.lake.logged import readers
from tests.unit.lake.tables import commit


def keep(folder: Path, count: str | None) -> None:
    """Say how many snapshots the Iceberg table keeps, as any other program may."""
    with readers.iceberg_catalog(folder) as catalog:
        table = catalog.load_table(("ottla", folder.name))
        with table.transaction() as transaction:
            if count is None:
                transaction.remove_properties(KEEP)
            else:
                transaction.set_properties({KEEP: count})


def test_an_iceberg_table_keeps_as_many_snapshots_as_its_property_says(tmp_path: Path) -> None:
    """Rows, chain and proof stay; a snapshot with a tag does, too."""
    table = open_table(str(tmp_path), "iceberg")
    for _ in range(2):
        commit(table, 5)
    assert readers.iceberg(tmp_path).metadata.properties[KEEP] == "100"
    first = readers.iceberg(tmp_path).metadata.snapshots[0].snapshot_id
    with readers.iceberg_catalog(tmp_path) as catalog:
        tagged = catalog.load_table(("ottla", tmp_path.name))
        tagged.manage_snapshots().create_tag(first, "first").commit()
    keep(tmp_path, "3")
    for _ in range(4):
        commit(table, 5)

    found = readers.iceberg(tmp_path)
    assert len(found.metadata.snapshots) == 1 + 3
    assert found.metadata.snapshots[0].snapshot_id == first
    assert len(found.metadata.snapshot_log) <= 4
    assert readers.rows_by_format(tmp_path, "iceberg") == readers.expected(2, 30)
    verified = ottla.lake.verify(str(tmp_path), bootstrap=None)
    assert (verified.problems, verified.replaced, verified.rows) == ([], [], 60)

    keep(tmp_path, None)
    for _ in range(3):
        commit(table, 5)
    assert len(readers.iceberg(tmp_path).metadata.snapshots) == 1 + 6


def test_an_iceberg_table_with_many_snapshots_loses_them_by_and_by(tmp_path: Path) -> None:
    """At most twenty with each commit."""
    table = open_table(str(tmp_path), "iceberg")
    for _ in range(25):
        commit(table, 1, partitions=1)
    keep(tmp_path, "2")
    counts = []
    for _ in range(3):
        commit(table, 1, partitions=1)
        counts.append(len(readers.iceberg(tmp_path).metadata.snapshots))
    assert counts == [6, 2, 2]
    assert ottla.lake.verify(str(tmp_path), bootstrap=None).problems == []


def test_verify_says_what_of_the_log_is_not_compared_any_more(tmp_path: Path) -> None:
    """What loads added by snapshots that have expired."""
    table = open_table(str(tmp_path), "iceberg")
    commit(table, 1, partitions=1)
    keep(tmp_path, "2")
    for _ in range(3):
        commit(table, 1, partitions=1)
    found = ottla.lake.verify(str(tmp_path), bootstrap=None)
    assert found.proven
    (of_loads,) = found.remarks
    assert of_loads.startswith("Iceberg's log has no entries of loads 1 to 2 any more")


def test_delta_names_the_newest_load(tmp_path: Path) -> None:
    """After a checkpoint, whatever others committed since."""
    table = open_table(str(tmp_path), "delta")
    store = LocalStore(tmp_path)
    for _ in range(12):
        commit(table, 1, partitions=1)
        newest, digest = table.latest()
        assert newest is not None
        assert DeltaLog(store).newest().is_of(newest.version, digest)
    assert digest is not None
    readers.delta(tmp_path).create_checkpoint()
    assert DeltaLog(store).newest() == NamedLoad(12, digest[:15])
    readers.delta(tmp_path).alter.set_table_properties({"delta.appendOnly": "false"})
    assert DeltaLog(store).newest() == NamedLoad(12, digest[:15])
    others = readers.delta(tmp_path)
    others.create_write_transaction(
        [],
        mode="append",
        schema=others.schema(),
        partition_by=[],
        commit_properties=CommitProperties(app_transactions=[Transaction("ottla", 99)]),
    )
    assert DeltaLog(store).newest().version == 99
