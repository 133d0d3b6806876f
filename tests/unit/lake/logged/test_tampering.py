"""Whatever is changed in the log of a Delta or Iceberg table is found by `verify`, and named."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction, RemoveAction

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake.model.manifest import seal, unseal
from ottla.lake.tables.opening import open_table
from tests.unit.lake.logged import readers
from tests.unit.lake.tables import commit, rows


def make(folder: Path, kind: str) -> None:
    """Three loads of ten rows of each of two partitions."""
    table = open_table(str(folder), kind)
    for _ in range(3):
        commit(table, 10)
    assert ottla.lake.verify(str(folder), bootstrap=None).problems == []


def problems(folder: Path) -> str:
    found = ottla.lake.verify(str(folder), bootstrap=None)
    assert not found.proven
    return "\n".join(found.problems)


def entry(folder: Path, number: int) -> Path:
    return folder / f"_delta_log/{number:020d}.json"


def actions(folder: Path, number: int, change: Callable[[list[dict[str, Any]]], object]) -> None:
    """Change the actions of one entry of a Delta log."""
    path = entry(folder, number)
    found = [json.loads(line) for line in path.read_text().splitlines()]
    change(found)
    path.write_text("\n".join(json.dumps(action) for action in found))


def of_kind(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [action[kind] for action in found if kind in action]


def changed_statistics(found: list[dict[str, Any]]) -> None:
    """The least offset of a file, higher than it is: queries pass over the rows below it."""
    add = of_kind(found, "add")[0]
    stats = json.loads(add["stats"])
    stats["minValues"]["offset"] += 5
    add["stats"] = json.dumps(stats)


def changed_rows(found: list[dict[str, Any]]) -> None:
    add = of_kind(found, "add")[0]
    stats = json.loads(add["stats"])
    stats["numRecords"] -= 1
    add["stats"] = json.dumps(stats)


def without_first(found: list[dict[str, Any]], kind: str) -> None:
    found.remove(next(action for action in found if kind in action))


def says(key: str, value: str) -> Callable[[list[dict[str, Any]]], object]:
    return lambda found: of_kind(found, "commitInfo")[0].update({key: value})


def in_delta(number: int, change: Callable[[list[dict[str, Any]]], object]) -> Callable[..., None]:
    return lambda folder: actions(folder, number, change)


def added_by_others(folder: Path) -> None:
    """A file of the table, copied and added once more."""
    source = next(iter(sorted((folder / "data").iterdir())))
    shutil.copy(source, folder / "data/copy.parquet")
    _delta_write(folder, [AddAction("data/copy.parquet", source.stat().st_size, {}, 1, True, "{}")])


def removed_by_others(folder: Path) -> None:
    name = next(iter(sorted((folder / "data").iterdir()))).name
    _delta_write(folder, [RemoveAction(f"data/{name}", True, 1)])


def claimed_by_others(folder: Path) -> None:
    """A commit of others with our application transaction."""
    _delta_write(folder, [], [Transaction("ottla", 4)])


def _delta_write(
    folder: Path, changes: list[Any], transactions: list[Transaction] | None = None
) -> None:
    table = DeltaTable(str(folder))
    table.create_write_transaction(
        changes,
        "append",
        table.schema(),
        [],
        commit_properties=CommitProperties(app_transactions=transactions),
    )


def made_anew(folder: Path) -> None:
    shutil.rmtree(folder / "_delta_log")
    DeltaTable.create(str(folder), open_schema())


def open_schema() -> Any:
    from deltalake import Schema

    return Schema.from_arrow(rows(0, 0, 1).schema)


def column_added(folder: Path) -> None:
    from deltalake.schema import Field

    DeltaTable(str(folder)).alter.add_columns([Field("more", "integer")])


def columns_changed(old: str, new: str) -> Callable[[list[dict[str, Any]]], object]:
    """Replace the first occurrence of a word in the table's columns."""

    def change(found: list[dict[str, Any]]) -> None:
        (meta,) = of_kind(found, "metaData")
        meta["schemaString"] = meta["schemaString"].replace(old, new, 1)

    return change


def copied(folder: Path) -> None:
    """The last commit stands in the log twice."""
    shutil.copy(entry(folder, 3), entry(folder, 4))


DELTA: dict[str, tuple[Callable[[Path], object], str]] = {
    "newest entry removed": (
        lambda folder: entry(folder, 3).unlink(), "Delta's log ends with load 2, and there were 3",
    ),
    "log removed": (
        lambda folder: shutil.rmtree(folder / "_delta_log"),
        "Delta's log names no load, and there were 3",
    ),
    "log made anew": (made_anew, "Delta's log names no load, and there were 3"),
    "restored": (lambda folder: DeltaTable(str(folder)).restore(2), "another program changed rows"),
    "file removed by others": (removed_by_others, "another program changed rows: 1 files"),
    "file added by others": (added_by_others, "another program changed rows: 0 files"),
    "rows deleted by others": (
        lambda folder: DeltaTable(str(folder)).delete("offset = 3"), "DELETE (Delta's log entry 4)",
    ),
    "rows changed by others": (
        lambda folder: DeltaTable(str(folder)).update(
            {"timestamp_type": "1"}, predicate="offset < 5"
        ),
        "UPDATE (Delta's log entry 4)",
    ),
    "file left out of its commit": (
        in_delta(2, lambda found: without_first(found, "add")),
        "Delta's log entry 2 does not add the files of load 2: data/v0000000002-",
    ),
    "size": (
        in_delta(2, lambda found: of_kind(found, "add")[0].update(size=7)),
        "Delta's log entry 2 does not add the files of load 2",
    ),
    "bounds": (in_delta(2, changed_statistics), "15 to 19 in column offset, and the file has 10"),
    "count of rows": (in_delta(2, changed_rows), "has 9 rows in"),
    "positions": (
        in_delta(3, says("ottla.positions", '{"0": 20, "1": 30}')),
        "Delta's log entry 3 has other positions than the manifest of its load",
    ),
    "digest": (
        in_delta(2, says("ottla.digest", "0" * 64)),
        "Delta's log entry 2 names another manifest of load 2",
    ),
    "version": (
        in_delta(2, says("ottla.version", "3")), "entry 2 is of load 3, where 2 has to follow",
    ),
    "transaction": (
        in_delta(3, lambda found: of_kind(found, "txn")[0].update(version=2)), "there were 3",
    ),
    "digest of the transaction": (
        in_delta(3, lambda found: of_kind(found, "txn")[1].update(version=2)),
        "the manifest of load 3 is missing",
    ),
    "transaction of others": (claimed_by_others, "the manifest of load 4 is missing"),
    "column removed": (
        in_delta(0, columns_changed('"timestamp"', '"time"')),
        "it has no column timestamp",
    ),
    "type of a column": (
        in_delta(0, columns_changed('"long"', '"integer"')),
        "its column offset is integer, and long in the files",
    ),
    "last commit twice": (copied, "Delta's log entry 4 is of load 3, where 4 has to follow"),
    "entry that is no JSON": (
        lambda folder: entry(folder, 2).write_text("{"), "can't be read",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "said"), DELTA.values(), ids=DELTA.keys())
def test_change_of_a_delta_log_is_named(
    tmp_path: Path, change: Callable[[Path], object], said: str
) -> None:
    make(tmp_path, "delta")
    change(tmp_path)
    assert said in problems(tmp_path)


def metadata(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the current metadata file of an Iceberg table."""
    path = Path(readers.iceberg(folder).metadata_location.removeprefix("file://"))
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))


def summary(number: int, key: str, value: str) -> Callable[[Path], None]:
    """Change what the snapshot of a load says."""
    return lambda folder: metadata(
        folder, lambda found: found["snapshots"][number - 1]["summary"].update({key: value})
    )


def table_property(key: str, value: str) -> Callable[[Path], None]:
    return lambda folder: metadata(folder, lambda found: found["properties"].update({key: value}))


def catalog_set_back(folder: Path) -> None:
    with sqlite3.connect(folder / "_ottla/catalog.db") as database:
        database.execute("update iceberg_tables set metadata_location = previous_metadata_location")
    database.close()


def rolled_back(folder: Path) -> None:
    table = readers.iceberg(folder)
    first = table.snapshots()[0].snapshot_id
    table.manage_snapshots().rollback_to_snapshot(first).commit()


def made_anew_in_catalog(folder: Path) -> None:
    with readers.iceberg_catalog(folder) as catalog:
        name = ("ottla", folder.name)
        catalog.drop_table(name)
        catalog.create_table(name, rows(0, 0, 1).schema, f"file://{folder}")


def appended(folder: Path) -> None:
    import pyarrow as pa

    readers.iceberg(folder).append(pa.Table.from_batches([rows(0, 5, 6)]))


def renamed(folder: Path) -> None:
    with readers.iceberg(folder).update_schema() as update:
        update.rename_column("timestamp", "time")


def manifest_file(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change each entry of the first Avro manifest of an Iceberg table."""
    import fastavro

    snapshot = readers.iceberg(folder).snapshots()[0]
    (found,) = snapshot.manifests(readers.iceberg(folder).io)
    path = Path(found.manifest_path.removeprefix("file://"))
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        entries = list(reader)
        said = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
    for one in entries:
        change(one["data_file"])
    with path.open("wb") as file:
        fastavro.writer(file, reader.writer_schema, entries, metadata=said)


def raise_bounds(file: dict[str, Any]) -> None:
    for bound in file["lower_bounds"]:
        if bound["key"] == 6:  # The column offset.
            bound["value"] = (5).to_bytes(8, "little")


def manifest_list_removed(folder: Path) -> None:
    snapshot = readers.iceberg(folder).snapshots()[1]
    Path(snapshot.manifest_list.removeprefix("file://")).unlink()


def without_mapping(folder: Path) -> None:
    with readers.iceberg(folder).transaction() as transaction:
        transaction.remove_properties("schema.name-mapping.default")


ICEBERG: dict[str, tuple[Callable[[Path], object], str]] = {
    "catalog set back": (catalog_set_back, "Iceberg's log ends with load 2, and there were 3"),
    "catalog removed": (
        lambda folder: (folder / "_ottla/catalog.db").unlink(),
        "Iceberg's log names no load, and there were 3",
    ),
    "rolled back": (rolled_back, "it was rolled back, or one of them was changed"),
    "made anew": (made_anew_in_catalog, "Iceberg's log names no load, and there were 3"),
    "rows added by others": (appended, "another program changed rows: 0 files"),
    "rows deleted by others": (
        lambda folder: readers.iceberg(folder).delete("offset = 3"),
        "another program changed rows: 2 files",
    ),
    "all deleted by others": (
        lambda folder: readers.iceberg(folder).delete(), "another program changed rows: 6 files",
    ),
    "positions": (
        summary(3, "ottla.positions", '{"0": 20, "1": 30}'),
        "has other positions than the manifest of its load",
    ),
    "positions that are none": (summary(2, "ottla.positions", "?"), "can't be read"),
    "digest": (summary(2, "ottla.digest", "0" * 64), "names another manifest of load 2"),
    "digest of the newest": (
        summary(3, "ottla.digest", "0" * 64), "it was rolled back, or one of them was changed",
    ),
    "version": (summary(2, "ottla.version", "1"), "is of load 1, where 2 has to follow"),
    "version of the table": (
        table_property("ottla.version", "2"), "it was rolled back, or one of them was changed",
    ),
    "column renamed": (renamed, "it has no column timestamp"),
    "no name mapping": (without_mapping, "has no name mapping"),
    "count of rows": (
        lambda folder: manifest_file(folder, lambda file: file.update(record_count=9)),
        "has 9 rows in",
    ),
    "bounds": (
        lambda folder: manifest_file(folder, raise_bounds),
        "has 5 to 9 in column offset, and the file has 0 to 9",
    ),
    "path of a file": (
        lambda folder: manifest_file(
            folder, lambda file: file.update(file_path=file["file_path"].replace("-p0-", "-p7-"))
        ),
        "does not add the files of load 1",
    ),
    "manifest list removed": (manifest_list_removed, "can't be read or written"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "said"), ICEBERG.values(), ids=ICEBERG.keys())
def test_change_of_an_iceberg_table_is_named(
    tmp_path: Path, change: Callable[[Path], object], said: str
) -> None:
    make(tmp_path, "iceberg")
    change(tmp_path)
    assert said in problems(tmp_path)


BOTH = pytest.mark.parametrize("kind", ["delta", "iceberg"])


def newest_manifest(folder: Path) -> Path:
    return folder / "_ottla/manifests" / max(os.listdir(folder / "_ottla/manifests"))


def edited(path: Path) -> None:
    """Another position, under a digest that fits."""
    fields, _ = unseal(path.read_bytes())
    fields["positions"]["0"] -= 1
    path.write_bytes(seal(fields))


OWN: dict[str, tuple[Callable[[Path], object], str]] = {
    "manifest removed": (
        lambda f: newest_manifest(f).unlink(), "the manifest of load 3 is missing",
    ),
    "manifest damaged": (
        lambda f: newest_manifest(f).write_bytes(b"{}"), "its bytes do not match the SHA-256",
    ),
    "manifest edited": (lambda f: edited(newest_manifest(f)), "is another's, under its name"),
    "all manifests removed": (
        lambda f: shutil.rmtree(f / "_ottla/manifests"), "the manifest of load 1 is missing",
    ),
    "heads removed": (lambda f: shutil.rmtree(f / "_ottla/heads"), "says how many loads it holds"),
    "data file removed": (
        lambda f: min((f / "data").iterdir()).unlink(), "is missing: 10 rows of partition",
    ),
    "data file changed": (
        lambda f: min((f / "data").iterdir()).write_bytes(b"x"), "is not as it was written",
    ),
}  # fmt: skip


@BOTH
@pytest.mark.parametrize(("change", "said"), OWN.values(), ids=OWN.keys())
def test_change_of_a_tables_own_files_is_named(
    tmp_path: Path, kind: str, change: Callable[[Path], object], said: str
) -> None:
    make(tmp_path, kind)
    change(tmp_path)
    assert said in problems(tmp_path)


@BOTH
def test_nothing_is_loaded_on_a_log_that_was_rolled_back(tmp_path: Path, kind: str) -> None:
    """The offsets of the load that is gone would not come again, or come twice."""
    make(tmp_path, kind)
    if kind == "delta":
        entry(tmp_path, 3).unlink()
    else:
        rolled_back(tmp_path)

    with pytest.raises(OttlaError, match="rolled back"):
        open_table(str(tmp_path)).latest()
