"""What other programs do to Delta and Iceberg tables between loads, and what verify says."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import ottla.lake
from ottla.lake.tables.opening import open_table
from tests.unit.lake.logged import readers
from tests.unit.lake.tables import commit, rows

BOTH = pytest.mark.parametrize("kind", ["delta", "iceberg"])


def make(folder: Path, kind: str) -> None:
    """Three loads of ten rows of each of two partitions."""
    table = open_table(str(folder), kind)
    for _ in range(3):
        commit(table, 10)


def verified(folder: Path) -> ottla.lake.Verification:
    found = ottla.lake.verify(str(folder), bootstrap=None)
    assert found.problems == []
    return found


def test_optimize_is_told_as_files_replaced(tmp_path: Path) -> None:
    """The rows are the same, which their count and hash show; loads go on behind it."""
    make(tmp_path, "delta")
    DeltaTable(str(tmp_path)).optimize.compact()
    commit(open_table(str(tmp_path)), 10)

    found = verified(tmp_path)
    assert found.replaced == [
        "6 files of loads were replaced by others (1) with the same 60 rows: "
        "OPTIMIZE (Delta's log entry 4)"
    ]
    assert (found.rows, found.uncounted) == (80, [])
    assert readers.rows_by_duckdb(tmp_path) == readers.expected(2, 40)


def test_rewrite_of_iceberg_is_told_as_files_replaced(tmp_path: Path) -> None:
    make(tmp_path, "iceberg")
    table = readers.iceberg(tmp_path)
    table.overwrite(table.scan().to_arrow())
    commit(open_table(str(tmp_path)), 10)

    found = verified(tmp_path)
    assert "6 files of loads were replaced by others (1) with the same 60 rows" in found.replaced[0]
    assert found.rows == 80
    assert readers.rows_by_duckdb(tmp_path) == readers.expected(2, 40)


def test_vacuum_takes_nothing_that_the_proof_needs(tmp_path: Path) -> None:
    """Neither our own folder, nor files that count."""
    make(tmp_path, "delta")
    table = DeltaTable(str(tmp_path))
    table.optimize.compact()
    table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)

    assert len(verified(tmp_path).replaced) == 1
    commit(open_table(str(tmp_path)), 10)
    assert readers.rows_by_format(tmp_path, "delta") == readers.expected(2, 40)


def test_log_without_its_old_entries_is_enough(tmp_path: Path) -> None:
    """A checkpoint takes their place; the newest load stands in it, and the chain follows."""
    make(tmp_path, "delta")
    table = DeltaTable(str(tmp_path))
    table.optimize.compact()
    table = DeltaTable(str(tmp_path))
    table.create_checkpoint()
    for old in range(4):
        (tmp_path / f"_delta_log/{old:020d}.json").unlink()

    assert verified(tmp_path).loads == 3
    commit(open_table(str(tmp_path)), 10)
    assert (verified(tmp_path).loads, verified(tmp_path).rows) == (4, 80)


def test_expired_snapshots_are_no_contradiction(tmp_path: Path) -> None:
    """The table's properties name the newest load when no snapshot of a load is left."""
    make(tmp_path, "iceberg")
    table = readers.iceberg(tmp_path)
    table.overwrite(table.scan().to_arrow())
    table = readers.iceberg(tmp_path)
    current = table.metadata.current_snapshot_id
    old = [one.snapshot_id for one in table.snapshots() if one.snapshot_id != current]
    table.maintenance.expire_snapshots().by_ids(old).commit()

    assert (verified(tmp_path).loads, verified(tmp_path).rows) == (3, 60)
    commit(open_table(str(tmp_path)), 10)
    assert (verified(tmp_path).loads, verified(tmp_path).rows) == (4, 80)


@BOTH
def test_file_that_readers_do_not_see_is_no_problem(tmp_path: Path, kind: str) -> None:
    """Readers go by the log; other programs may leave files that do not count."""
    make(tmp_path, kind)
    pq.write_table(pa.Table.from_batches([rows(0, 0, 5)]), tmp_path / "part-0-aborted.parquet")

    assert verified(tmp_path).uncounted == ["part-0-aborted.parquet"]


@pytest.mark.parametrize("unit", ["us", "INT96"])
def test_rows_of_other_writers_are_read_by_their_values(tmp_path: Path, unit: str) -> None:
    """Spark writes times of 96 bits, and others large strings: the rows are the same."""
    make(tmp_path, "delta")
    written = pa.concat_tables(pq.read_table(p) for p in DeltaTable(str(tmp_path)).file_uris())
    names = {"key": pa.large_binary(), "topic": pa.large_string()}
    for name, kind in names.items():
        at = written.schema.get_field_index(name)
        written = written.set_column(at, name, written[name].cast(kind))
    DeltaTable(str(tmp_path)).optimize.compact()
    (compacted,) = DeltaTable(str(tmp_path)).file_uris()
    pq.write_table(written, compacted, use_deprecated_int96_timestamps=unit == "INT96")
    entry = tmp_path / "_delta_log" / f"{4:020d}.json"
    lines = [json.loads(line) for line in entry.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["size"] = Path(compacted).stat().st_size
    entry.write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    assert len(verified(tmp_path).replaced) == 1


@pytest.mark.parametrize(
    ("updates", "said"),
    [
        ({"topic": "'other'"}, "holds rows of another topic"),
        ({"timestamp": "timestamp + interval '1 microsecond'"}, "no whole milliseconds"),
    ],
    ids=["topic", "microsecond"],
)
def test_values_beside_the_hash_that_others_change_are_named(
    tmp_path: Path, updates: dict[str, str], said: str
) -> None:
    """The hash of a row has neither its topic nor microseconds."""
    make(tmp_path, "delta")
    DeltaTable(str(tmp_path)).update(updates=updates)

    assert said in "\n".join(ottla.lake.verify(str(tmp_path), bootstrap=None).problems)


def test_false_bounds_of_a_file_of_others_are_named(tmp_path: Path) -> None:
    make(tmp_path, "delta")
    DeltaTable(str(tmp_path)).optimize.compact()
    entry = tmp_path / "_delta_log" / f"{4:020d}.json"
    text = entry.read_text().replace('\\"offset\\":0', '\\"offset\\":1')
    assert text != entry.read_text()
    entry.write_text(text)

    (problem,) = ottla.lake.verify(str(tmp_path), bootstrap=None).problems
    assert "column offset outside the log's 1 to 29" in problem


def test_deleted_and_changed_rows_are_named_with_who_did_it(tmp_path: Path) -> None:
    make(tmp_path, "delta")
    DeltaTable(str(tmp_path)).optimize.compact()
    DeltaTable(str(tmp_path)).delete("partition = 1 and offset >= 25")

    problem, _ = ottla.lake.verify(str(tmp_path), bootstrap=None).problems
    assert problem.startswith("another program changed rows: 6 files of loads with 60 rows")
    assert "1 of others count with 55 rows" in problem
    assert problem.endswith("OPTIMIZE (Delta's log entry 4), DELETE (Delta's log entry 5)")
