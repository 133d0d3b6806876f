"""The bytes of a log's files are on record: a bit that changes no meaning is found, too."""

import os
from pathlib import Path

import pytest
from deltalake import DeltaTable

import ottla.lake
from ottla.lake.tables.opening import open_table
from ottla.lake.verifying.report import Verification
from tests.unit.lake.logged import readers
from tests.unit.lake.tables import commit, forge

BOTH = pytest.mark.parametrize("kind", ["delta", "iceberg"])


def make(folder: Path, kind: str, loads: int = 3) -> None:
    for _ in range(loads):
        commit(open_table(str(folder), kind), 10)
    found = verified(folder)
    assert (found.problems, found.remarks) == ([], [])


def verified(folder: Path) -> Verification:
    return ottla.lake.verify(str(folder), bootstrap=None)


def record(folder: Path, version: int) -> Path:
    return folder / f"_ottla/log/{version:020d}.json"


def log_files(folder: Path) -> list[Path]:
    found = [*folder.glob("_delta_log/*"), *folder.glob("metadata/*")]
    # Other names for readers by path are not on record: no commit reads them.
    names = ("version-hint.text", "v[0-9]*.metadata.json")
    return sorted(path for path in found if path.is_file() and not any(map(path.match, names)))


@BOTH
def test_appended_byte_is_named_in_each_file_of_the_log(tmp_path: Path, kind: str) -> None:
    """A blank or a zero behind the content: libraries pass over most of them."""
    make(tmp_path, kind, loads=2)
    for path in log_files(tmp_path):
        content = path.read_bytes()
        path.write_bytes(content + b" ")
        told = "\n".join(verified(tmp_path).problems)
        assert f"{path.name} is not as load " in told
        path.write_bytes(content)


@BOTH
def test_crash_before_the_record_is_made_good_by_the_next_load(tmp_path: Path, kind: str) -> None:
    """As if it came between the log's commit and the record."""
    make(tmp_path, kind)
    record(tmp_path, 3).unlink()
    (tmp_path / f"_ottla/heads/{3:020d}.json").unlink()

    found = verified(tmp_path)
    assert found.problems == []
    assert "the loads after 2 is not on record yet" in found.remarks[0]

    open_table(str(tmp_path)).latest()
    assert verified(tmp_path).remarks == []
    files = [path.read_text() for path in (tmp_path / "_ottla/log").iterdir()]
    assert all(any(one.name in text for text in files) for one in log_files(tmp_path))


@BOTH
def test_table_without_records_is_judged_as_before_them(tmp_path: Path, kind: str) -> None:
    """One of an earlier version; its next load puts all that the log has on record."""
    make(tmp_path, kind)
    for path in (tmp_path / "_ottla/log").iterdir():
        path.unlink()
    for path in (tmp_path / "_ottla/heads").iterdir():
        forge(path, lambda fields: fields.pop("record"))

    found = verified(tmp_path)
    assert found.problems == []
    assert "no load has written down the bytes" in found.remarks[0]

    commit(open_table(str(tmp_path)), 10)
    assert verified(tmp_path).remarks == []
    oldest = log_files(tmp_path)[0]
    oldest.write_bytes(oldest.read_bytes() + b" ")
    assert f"{oldest.name} is not as load 4 left it" in "\n".join(verified(tmp_path).problems)


RECORDS = {
    "newest removed": (lambda f: record(f, 3).unlink(), "for load 3, which the head names"),
    "middle removed": (lambda f: record(f, 2).unlink(), "03.json follows another record"),
    "damaged": (lambda f: record(f, 2).write_bytes(b"{}"), "02.json can't be read"),
    "edited and sealed again": (
        lambda f: forge(record(f, 3), lambda fields: fields.update(files={})),
        "the head names another record",
    ),
    "older edited and sealed again": (
        lambda f: forge(record(f, 1), lambda fields: fields.update(files={})),
        "02.json follows another record",
    ),
}


@BOTH
@pytest.mark.parametrize(("change", "said"), RECORDS.values(), ids=RECORDS.keys())
def test_change_of_a_record_is_named(tmp_path: Path, kind: str, change, said: str) -> None:  # type: ignore[no-untyped-def]
    make(tmp_path, kind)
    change(tmp_path)
    assert said in "\n".join(verified(tmp_path).problems)


def test_checkpoint_of_another_program_is_no_damage(tmp_path: Path) -> None:
    """It writes the pointer to the last checkpoint again, and may remove entries below it."""
    make(tmp_path, "delta", loads=11)
    table = DeltaTable(str(tmp_path))
    table.create_checkpoint()
    table.cleanup_metadata()
    assert verified(tmp_path).problems == []
    for number in range(5):
        os.unlink(tmp_path / f"_delta_log/{number:020d}.json")
    assert verified(tmp_path).problems == []

    pointer = tmp_path / "_delta_log/_last_checkpoint"
    pointer.write_bytes(pointer.read_bytes().replace(b"11", b"10", 1))
    assert "_last_checkpoint is not as load 11 left it" in "\n".join(verified(tmp_path).problems)


def test_commits_of_others_and_their_expiry_are_no_damage(tmp_path: Path) -> None:
    """The catalog moves on, and metadata that no snapshot needs may go."""
    make(tmp_path, "iceberg")
    table = readers.iceberg(tmp_path)
    with table.transaction() as transaction:
        transaction.set_properties({"owner": "x"})
    first = table.snapshots()[0]
    table.maintenance.expire_snapshots().by_ids([first.snapshot_id]).commit()
    Path(first.manifest_list.removeprefix("file://")).unlink()
    assert verified(tmp_path).problems == []
