"""Whatever is changed in a table's folder is found and named, one bit as well as a whole file."""

import hashlib
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake.model.manifest import unseal
from ottla.lake.tables.opening import open_table
from ottla.lake.tables.own import OwnTable
from tests.unit.lake.tables import commit, forge, manifest_path

FLIPS = 20


def make(folder: Path) -> OwnTable:
    """Three loads of ten rows of each of two partitions."""
    table = open_table(str(folder))
    for _ in range(3):
        commit(table, 10)
    found = ottla.lake.verify(str(folder), bootstrap=None)
    assert (found.problems, found.uncounted, found.rows) == ([], [], 60)
    return table


@pytest.fixture
def table(tmp_path: Path) -> OwnTable:
    return make(tmp_path)


def problems(table: OwnTable) -> str:
    found = ottla.lake.verify(str(table.store.root), bootstrap=None)
    assert not found.proven
    return "\n".join(found.problems)


def replaced(
    name: str, values: Callable[[list[Any]], list[Any]], kind: pa.DataType | None = None
) -> "Rewrite":
    """A change of one column: its values, or its type."""

    def change(rows: pa.Table) -> pa.Table:
        field = rows.schema.field(name)
        column = pa.array(values(rows[name].to_pylist()), kind or field.type)
        at = rows.schema.get_field_index(name)
        return rows.set_column(at, pa.field(name, column.type), column)

    return change


def same(values: list[Any]) -> list[Any]:
    return values


Rewrite = Callable[[pa.Table], pa.Table]
REWRITES: dict[str, tuple[Rewrite, str]] = {
    "topic": (replaced("topic", lambda v: ["other", *v[1:]]), "rows of another topic"),
    "topic is null": (replaced("topic", lambda v: [None, *v[1:]]), "nulls in column topic"),
    "microseconds": (
        replaced("timestamp", lambda v: v, pa.timestamp("us")),
        "column timestamp of type timestamp[us] instead of timestamp[us, tz=UTC]",
    ),
    "partition is wider": (
        replaced("partition", same, pa.int64()),
        "column partition of type int64 instead of int32",
    ),
    "value is text": (
        replaced("value", lambda v: [one.decode() for one in v], pa.string()),
        "column value of type string instead of binary",
    ),
    "column added": (
        lambda rows: rows.append_column("more", pa.nulls(len(rows), pa.int32())),
        "a column more that no load writes",
    ),
    "column removed": (lambda rows: rows.drop_columns(["key"]), "no column key"),
    "columns in another order": (
        lambda rows: rows.select(rows.column_names[::-1]),
        "its columns in another order",
    ),
    "null headers": (
        replaced("headers", lambda v: [one or None for one in v]),
        "nulls in column headers",
    ),
    "header without a name": (
        replaced("headers", lambda v: [[{"key": None, "value": b""}], *v[1:]]),
        "headers without a name",
    ),
    "offset is null": (replaced("offset", lambda v: [*v[:-1], None]), "nulls in column offset"),
    "rows in another order": (lambda rows: rows.take(list(range(9, -1, -1))), "an offset twice"),
    "row removed": (lambda rows: rows.slice(1), "holds 9 rows"),
    "rows removed": (lambda rows: rows.slice(0, 0), "holds 0 rows"),
    "value": (replaced("value", lambda v: [b"x", *v[1:]]), "with hash"),
}


def shifted(rows: pa.Table) -> pa.Table:
    """All timestamps later by a microsecond, which the row hash does not see."""
    later = pa.array([one.value + 1 for one in rows["timestamp"].combine_chunks()], pa.int64())
    at = rows.schema.get_field_index("timestamp")
    return rows.set_column(at, rows.schema.field("timestamp"), later.cast(rows["timestamp"].type))


REWRITES["timestamps"] = (shifted, "timestamps that are no whole milliseconds")


@pytest.mark.parametrize("is_forged", [False, True], ids=["", "forged"])
@pytest.mark.parametrize(("change", "said"), REWRITES.values(), ids=REWRITES.keys())
def test_rewritten_file_is_found(
    table: OwnTable, change: Rewrite, said: str, is_forged: bool
) -> None:
    """By its SHA-256; and by its rows where manifest and head were forged to have that, too."""
    manifest, _ = table.latest()
    assert manifest is not None
    path = table.store.root / manifest.files[1].path
    pq.write_table(change(pq.read_table(path)), path)
    if is_forged:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        changed = {"sha256": digest, "size_bytes": path.stat().st_size}
        forge(manifest_path(table.store.root, 3), lambda m: m["files"][1].update(changed))
        _, sealed = unseal(manifest_path(table.store.root, 3).read_bytes())
        head = table.store.root / "_ottla/heads" / manifest_path(table.store.root, 3).name
        forge(head, lambda fields: fields.update(manifest=sealed))

    told = problems(table)
    assert said in told
    assert manifest.files[1].path in told
    assert ("is not as it was written" in told) is not is_forged


@pytest.mark.parametrize(
    "name",
    [
        "data/copy.parquet",
        "data/{}-copy.parquet",
        "data/{}.parquet.bak",
        "copy.parquet",
        "_dead_letters/copy.parquet",
    ],
)
def test_a_stray_copy_is_named(table: OwnTable, name: str) -> None:
    """A reader of the whole folder would see its rows twice."""
    file = ottla.lake.files(str(table.store.root))[0]
    copy = table.store.root / name.format(Path(file).stem)
    copy.parent.mkdir(exist_ok=True)
    shutil.copy(file, copy)

    assert f"{copy.relative_to(table.store.root)} does not belong to the table" in problems(table)


def test_files_of_loads_that_did_not_count_are_no_problem(table: OwnTable) -> None:
    """What a killed task or load left is told, and the next load removes it."""
    file = Path(ottla.lake.files(str(table.store.root))[0])
    left = file.with_name(f"{file.stem[:-12]}0123456789ab.parquet")
    shutil.copy(file, left)
    found = ottla.lake.verify(str(table.store.root), bootstrap=None)

    assert (found.problems, found.uncounted) == ([], [f"data/{left.name}"])
    assert table.remove_orphans() == [left.name]


def watched(table: OwnTable) -> list[Path]:
    files = [table.store.root / path for path in ottla.lake.files(str(table.store.root))]
    return sorted([*files, *(table.store.root / "_ottla").glob("[mh]*/*.json")])


def flip(table: OwnTable, chance: random.Random) -> None:
    """Flip one bit of one file, prove that it is found, and flip it back."""
    path = chance.choice(watched(table))
    content = path.read_bytes()
    bit = chance.randrange(8 * len(content))
    flipped = bytearray(content)
    flipped[bit // 8] ^= 1 << bit % 8
    path.write_bytes(flipped)
    try:
        assert path.name in problems(table), f"bit {bit} of {path}"
        if path.suffix == ".json":
            with pytest.raises(OttlaError, match=path.name):
                table.latest()
    finally:
        path.write_bytes(content)


def test_single_flipped_bits_are_found_and_named(table: OwnTable) -> None:
    """Each in a file chosen at random: of data, a manifest, a head."""
    chance = random.Random(9)
    for _ in range(FLIPS):
        flip(table, chance)
    assert ottla.lake.verify(str(table.store.root), bootstrap=None).problems == []


if __name__ == "__main__":  # FOLDER COUNT SEED: more of them; silent where all are found.
    made, seeded = make(Path(sys.argv[1])), random.Random(int(sys.argv[3]))
    for _ in range(int(sys.argv[2])):
        flip(made, seeded)


@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])
def test_device_in_the_place_of_a_file_is_named_and_not_read(tmp_path: Path, kind: str) -> None:
    """It has no end."""
    manifest = commit(open_table(str(tmp_path), kind), 5)
    path = tmp_path / manifest.files[0].path
    path.unlink()
    path.symlink_to("/dev/zero")

    problems = ottla.lake.verify(str(tmp_path), bootstrap=None).problems
    assert "this is no regular file" in "\n".join(problems)
