"""What is changed in a table's folder is found and named: by hand in many ways, and by single bits.

One table of each format, which every case changes, and which is put back afterwards.
"""

import itertools
import json
import random
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake.check import damaged_files
from ottla.lake.job.output import ParquetOutput
from ottla.lake.model.layout import DEAD
from ottla.lake.tables.opening import open_table
from tests.system.lake import flips
from tests.unit.lake.tables import commit, data_file, forge, rows, written

FORMATS = ["parquet", "delta", "iceberg"]
LOADS = 11
Change = Callable[[Path], object]


def _commit_with_dead_letters(table: Any) -> None:
    """A load of ten rows of each partition, and one more that was not decoded."""
    plain = written(table, 10, uuid.uuid4().hex)
    files, ledgers = [], []
    for ledger in plain.ledgers:
        at = ledger.end
        load = plain.files[0].path.split("/")[1][:44]
        path = f"_dead_letters/{load}-p{ledger.partition}-{at}.parquet"
        output = ParquetOutput(table.store, path, layout=DEAD)
        why = [["value"], ["is no number"], [None], [1]]
        added = [pa.array(value, one.type) for value, one in zip(why, DEAD.added, strict=True)]
        output.write(rows(ledger.partition, at, at + 1), added)
        output.finish()
        files.append(data_file(path, ledger.partition, at, at + 1, output))
        ledgers.append(replace(ledger, end=at + 1, dead_letters=1))
    positions = {ledger.partition: ledger.end for ledger in ledgers}
    table.commit(replace(plain, dead_letters=files, ledgers=ledgers, positions=positions))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A proven table of each format, with checkpoints of ottla's and of Delta's."""
    made = {}
    for kind in FORMATS:
        made[kind] = tmp_path_factory.mktemp(kind)
        table = open_table(str(made[kind]), kind)  # type: ignore[arg-type]
        for _ in range(LOADS - 1):
            commit(table, 10)  # type: ignore[arg-type]
        _commit_with_dead_letters(table)
        found = ottla.lake.verify(str(made[kind]), bootstrap=None)
        assert (found.problems, found.remarks, found.uncounted) == ([], [], [])
        assert (found.rows, found.dead_letters) == (20 * LOADS, 2)
    return made


@pytest.fixture
def folder(request: pytest.FixtureRequest, tables: dict[str, Path]) -> Iterator[Path]:
    """The table of a format, put back as it was afterwards."""
    root = tables[request.param]
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    yield root
    for path in root.rglob("*"):
        if path.is_file() and path not in before:
            path.unlink()
    for path, content in before.items():
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)


@pytest.fixture(autouse=True)
def _read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sound Parquet needs no process of its own, which costs a second of CPU each."""
    monkeypatch.setattr(damaged_files, "run_apart", lambda call: call())


def data(root: Path, load: int = 2, partition: int = 0) -> Path:
    (path,) = root.glob(f"data/v{load:010d}-*-p{partition}-*.parquet")
    return path


def own(root: Path, what: str, number: int) -> Path:
    """A numbered file below `_ottla`; manifests of Delta and Iceberg tables have digests, too."""
    (path,) = root.glob(f"_ottla/{what}/{number:020d}*.json")
    return path


def entry(root: Path, number: int) -> Path:
    return root / f"_delta_log/{number:020d}.json"


def metadata(root: Path, place: int = -1) -> Path:
    return sorted(root.glob("metadata/[0-9]*.metadata.json"))[place]


def avro(root: Path, place: int, pattern: str) -> Path:
    """A list of manifests or a manifest, in the order of the snapshots."""
    snapshots = json.loads(metadata(root).read_bytes())["snapshots"]
    lists = [Path(one["manifest-list"].removeprefix("file://")) for one in snapshots]
    named = lists[place]
    # Both files of a commit have its id in their names.
    commit_id = named.stem.split("-", 3)[3]
    return named if pattern == "snap" else root / f"metadata/{commit_id}-m0.avro"


def column(name: str, values: Callable[[list[Any]], list[Any]], kind: Any = None) -> Change:
    """Change one column of a data file: its values, or its type."""

    def change(found: pa.Table) -> pa.Table:
        field = found.schema.field(name)
        changed = pa.array(values(found[name].to_pylist()), kind or field.type)
        at = found.schema.get_field_index(name)
        return found.set_column(at, pa.field(name, changed.type), changed)

    return rewritten(change)


def rewritten(change: Callable[[pa.Table], pa.Table], **options: Any) -> Change:
    def rewrite(root: Path) -> str:
        path = data(root)
        pq.write_table(change(pq.read_table(path)), path, **options)
        return path.name

    return rewrite


def later(found: pa.Table) -> pa.Table:
    """All timestamps later by a microsecond."""
    field = found.schema.field("timestamp")
    micros = pa.array([one.value + 1 for one in found["timestamp"].combine_chunks()], pa.int64())
    return found.set_column(
        found.schema.get_field_index("timestamp"), field, micros.cast(field.type)
    )


def key_and_value_swapped(found: pa.Table) -> pa.Table:
    names = found.column_names
    at, other = names.index("key"), names.index("value")
    names[at], names[other] = names[other], names[at]
    return found.select(names).rename_columns(found.column_names)


def on_bytes(
    path: Callable[[Path], Path], change: Callable[[bytes], bytes] = lambda content: content + b" "
) -> Change:
    def edit(root: Path) -> str:
        file = path(root)
        file.write_bytes(change(file.read_bytes()))
        return file.name

    return edit


def removed(path: Callable[[Path], Path]) -> Change:
    def remove(root: Path) -> str:
        file = path(root)
        file.unlink()
        return file.name

    return remove


def says(change: Change, words: str) -> Change:
    """The change, where the report has these words instead of the name of a file."""
    return lambda root: change(root) and words


def swapped(one: Callable[[Path], Path], other: Callable[[Path], Path]) -> Change:
    def swap(root: Path) -> str:
        first, second = one(root), other(root)
        content = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(content)
        return first.name

    return swap


def replaced_by(one: Callable[[Path], Path], other: Callable[[Path], Path]) -> Change:
    def put(root: Path) -> str:
        first = one(root)
        first.write_bytes(other(root).read_bytes())
        return first.name

    return put


def rows_swapped(root: Path) -> str:
    """The first rows of two files, each in the other one's place."""
    one, other = data(root, 2), data(root, 3)
    left, right = pq.read_table(one), pq.read_table(other)
    pq.write_table(pa.concat_tables([right.slice(0, 1), left.slice(1)]), one)
    pq.write_table(pa.concat_tables([left.slice(0, 1), right.slice(1)]), other)
    return one.name


def of_another_table(root: Path) -> str:
    """The same offsets and columns, other rows."""
    path = data(root)
    found = pq.read_table(path)
    at = found.schema.get_field_index("value")
    values = pa.array([b"w%d" % number for number in range(len(found))], pa.binary())
    pq.write_table(found.set_column(at, found.schema.field("value"), values), path)
    return path.name


def renamed(root: Path) -> str:
    path = data(root)
    path.rename(path.with_name(path.name.replace("-p0-", "-p7-")))
    return path.name


def sealed_again(what: str, number: int, edit: Callable[[dict[str, Any]], object]) -> Change:
    def change(root: Path) -> str:
        path = own(root, what, number)
        forge(path, edit)
        return path.name

    return change


def moved(by: int) -> Callable[[dict[str, Any]], object]:
    return lambda fields: fields["positions"].update({"0": fields["positions"]["0"] + by})


def all_removed(what: str, said: str) -> Change:
    def remove(root: Path) -> str:
        for path in (root / "_ottla" / what).iterdir():
            path.unlink()
        return said

    return remove


def pointer_set_back(root: Path) -> str:
    _in_catalog(root, "update iceberg_tables set metadata_location = previous_metadata_location")
    return "catalog.db"


def _in_catalog(root: Path, statement: str) -> None:
    database = sqlite3.connect(root / "_ottla/catalog.db")
    database.execute(statement)
    database.commit()
    database.close()


def without_a_file(root: Path) -> str:
    """A commit of Delta's log that does not add one of its files."""
    path = entry(root, 2)
    lines = path.read_text().splitlines(keepends=True)
    lines.remove(next(line for line in lines if line.startswith('{"add"')))
    path.write_text("".join(lines))
    return path.name


def same(found: pa.Table) -> pa.Table:
    return found


def copied(root: Path) -> str:
    path = data(root)
    copy = path.with_name("copy.parquet")
    copy.write_bytes(path.read_bytes())
    return copy.name


OF_ROWS: dict[str, Change] = {
    "topic": column("topic", lambda v: ["other", *v[1:]]),
    "timestamps by a microsecond": rewritten(later),
    "timestamps without a zone": column("timestamp", lambda v: v, pa.timestamp("us")),
    "wider partition": column("partition", lambda v: v, pa.int64()),
    "value as text": column("value", lambda v: [one.decode() for one in v], pa.string()),
    "null for empty headers": column("headers", lambda v: [one or None for one in v]),
    "empty for null keys": column("key", lambda v: [b"", *v[1:]]),
    "one value": column("value", lambda v: [b"x", *v[1:]]),
    "offsets moved on": column("offset", lambda v: [one + 1 for one in v]),
    "column added": rewritten(lambda f: f.append_column("more", pa.nulls(len(f), pa.int32()))),
    "column removed": rewritten(lambda f: f.drop_columns(["key"])),
    "columns in another order": rewritten(lambda f: f.select(f.column_names[::-1])),
    "key and value swapped": rewritten(key_and_value_swapped),
    "rows in another order": rewritten(lambda f: f.take(list(range(len(f)))[::-1])),
    "row doubled, another removed": rewritten(lambda f: f.take([0, 0, *range(2, len(f))])),
    "row removed": rewritten(lambda f: f.slice(1)),
    "all rows removed": rewritten(lambda f: f.slice(0, 0)),
    "rows swapped between files": rows_swapped,
    "the same rows, compressed otherwise": rewritten(same, compression="gzip"),
}
OF_FILES: dict[str, Change] = {
    "bytes appended": on_bytes(data),
    "truncated": on_bytes(data, lambda content: content[:-20]),
    "emptied": on_bytes(data, lambda _: b""),
    "older file in its place": replaced_by(data, lambda root: data(root, 1)),
    "file of another partition in its place": replaced_by(data, lambda root: data(root, 2, 1)),
    "file of another table in its place": of_another_table,
    "two files swapped": swapped(data, lambda root: data(root, 3)),
    "renamed": renamed,
    "removed": removed(data),
    "copied": copied,
    "dead letters changed": on_bytes(lambda root: min(root.glob("_dead_letters/*"))),
    "dead letters removed": removed(lambda root: min(root.glob("_dead_letters/*"))),
}
OF_MANIFESTS: dict[str, Change] = {
    "positions moved back": sealed_again("manifests", LOADS, moved(-5)),
    "positions moved on": sealed_again("manifests", LOADS, moved(5)),
    "ledger changed": sealed_again(
        "manifests", 2, lambda f: f["ledgers"][0].update(loaded=9, compacted=1)
    ),
    "hash of a file changed": sealed_again(
        "manifests", 2, lambda f: f["files"][0].update(hash="0" * 32)
    ),
    "manifest edited": on_bytes(lambda root: own(root, "manifests", 2)),
    "manifests swapped": swapped(
        lambda root: own(root, "manifests", 2), lambda root: own(root, "manifests", 3)
    ),
    "newest manifest removed": lambda root: (
        own(root, "manifests", LOADS).unlink() or ("000011.json is missing", "load 11 is missing")
    ),
    "all manifests removed": lambda root: (
        all_removed("manifests", "")(root) or ("00001.json is missing", "load 1 is missing")
    ),
    "heads removed": all_removed("heads", "_ottla/heads says how many loads"),
    "head edited": on_bytes(lambda root: own(root, "heads", LOADS)),
    "head of another manifest": lambda root: (
        sealed_again("heads", LOADS, lambda f: f.update(manifest="0" * 64))(root) and "the head"
    ),
    "checkpoint edited": on_bytes(lambda root: own(root, "checkpoints", 10)),
    "checkpoint forged": sealed_again("checkpoints", 10, moved(5)),
    "loads of a checkpoint forged": sealed_again(
        "checkpoints", 10, lambda f: f.update(loads=f["loads"].replace(":2 ", ":1 ", 1))
    ),
    "format changed": on_bytes(
        lambda root: root / "_ottla/format.json", lambda c: c.replace(b'"table": "', b'"table": "x')
    ),
}
# The format's own log, which its reader judges: what changes a meaning is a problem.
OF_DELTA: dict[str, Change] = {
    "newest entry removed": says(removed(lambda root: entry(root, LOADS)), "ends with load 10"),
    # delta-rs itself refuses such a log, and names the versions.
    "entry in between removed": says(
        removed(lambda root: entry(root, LOADS - 1)), "Gap between checkpoint version"
    ),
    "entries swapped": says(
        swapped(lambda root: entry(root, 2), lambda root: entry(root, 3)),
        "Delta's log entry 2 is of load 3, where 2 has to follow",
    ),
    "file left out of an entry": says(
        without_a_file, "Delta's log entry 2 does not add the files of load 2"
    ),
    "statistics in an entry": says(
        on_bytes(
            lambda root: entry(root, LOADS),
            lambda c: c.replace(b'numRecords\\":10', b'numRecords\\":11'),
        ),
        "has 11 rows in",
    ),
    "entry is no JSON": says(
        on_bytes(lambda root: entry(root, 2), lambda _: b"{"), "Delta's log entry 2 can't be read"
    ),
    "Delta's checkpoint truncated": says(
        on_bytes(lambda root: min(root.glob("_delta_log/*.checkpoint.parquet")), lambda c: c[:-9]),
        "Invalid Parquet file",
    ),
    "Delta's checkpoint removed": says(
        removed(lambda root: max(root.glob("_delta_log/*.checkpoint.parquet"))),
        "Invalid Checkpoint",
    ),
}
OF_ICEBERG: dict[str, Change] = {
    "pointer moved to older metadata": says(pointer_set_back, "ends with load 10"),
    "catalog truncated": says(
        on_bytes(lambda root: root / "_ottla/catalog.db", lambda c: c[: len(c) // 2]), "malformed"
    ),
    "catalog removed": says(
        removed(lambda root: root / "_ottla/catalog.db"), "Iceberg's log names no load"
    ),
    "metadata of before in its place": says(
        replaced_by(metadata, lambda root: metadata(root, -2)), "ends with load 10"
    ),
    "metadata removed": removed(metadata),
    "older list of manifests in its place": says(
        replaced_by(lambda root: avro(root, -1, "snap"), lambda root: avro(root, 0, "snap")),
        "does not add the files of load 11",
    ),
    "list of manifests removed": removed(lambda root: avro(root, 1, "snap")),
    "manifest of Iceberg's edited": says(
        on_bytes(lambda root: avro(root, 1, "m0"), lambda c: c[:-30] + b"?" + c[-29:]),
        "Iceberg",
    ),
    "another manifest of Iceberg's in its place": says(
        replaced_by(lambda root: avro(root, 1, "m0"), lambda root: avro(root, 2, "m0")),
        "does not add the files of load 2",
    ),
    "manifest of Iceberg's removed": removed(lambda root: avro(root, 1, "m0")),
}
CASES = [
    pytest.param(kind, change, id=f"{kind}: {name}")
    for kind, changes in [
        *itertools.product(FORMATS, [OF_ROWS, OF_FILES, OF_MANIFESTS]),
        ("delta", OF_DELTA),
        ("iceberg", OF_ICEBERG),
    ]
    for name, change in changes.items()
]


@pytest.mark.parametrize(("folder", "change"), CASES, indirect=["folder"])
def test_tampering_is_found_and_named(folder: Path, change: Change) -> None:
    """By the name of the file that was changed, or of what is missing."""
    expected = change(folder)
    names = (expected,) if isinstance(expected, str) else tuple(expected)  # type: ignore[call-overload]
    try:
        found = ottla.lake.verify(str(folder), bootstrap=None)
    except OttlaError as error:
        told = error.message
    else:
        # Readers of Delta and Iceberg go by the log: a copy in the folder is no row of the table.
        is_copy = names == ("copy.parquet",) and not own(folder, "manifests", 1).stem.isdecimal()
        assert found.proven == is_copy
        told = "\n".join([*found.problems, *found.uncounted])
    assert any(name in told for name in names), told


@pytest.mark.parametrize("kind", FORMATS)
def test_single_flipped_bits_are_found_and_named(tmp_path: Path, kind: str) -> None:
    """Twenty of them; `python -m tests.system.lake.flips` flips as many as you like."""
    flips.make(tmp_path, kind)
    chance = random.Random(f"suite {kind}")
    found = [flip for flip in flips.flips(tmp_path, 20, chance) if flip.outcome not in flips.GOOD]
    assert found == []
