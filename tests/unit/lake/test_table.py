"""A load is visible whole or not at all, whatever stops it and whoever else writes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.base.errors import OttlaError
from ottla.lake.model.manifest import DataFile, Manifest, from_bytes, next_manifest, to_bytes
from ottla.lake.tables import data_files
from ottla.lake.tables.opening import existing_table, open_table
from ottla.lake.tables.own import OwnTable
from ottla.lake.tables.table import CommitConflict
from ottla.ledger.partition import PartitionLedger
from tests.unit.lake import tables as made

LOAD_A, LOAD_B = "a" * 32, "b" * 32


def load(table: OwnTable, load_id: str, rows: int) -> Manifest:
    """Write a file for `rows` rows of partition 0 and return the manifest that names it."""
    before, before_digest = table.latest()
    start = before.positions[0] if before else 0
    path = f"{table.file_stem(before.version + 1 if before else 1, load_id, 0, start)}-x.parquet"
    (table.store.root / path).write_bytes(b"rows")
    return next_manifest(
        before,
        before_digest,
        load_id=load_id,
        topic="flights",
        topic_id=None,
        cluster_id="c",
        created_ms=1,
        files=[DataFile(path, 0, start, start + rows, rows, 4, f"{rows:032x}", "0" * 64)],
        ledgers=[PartitionLedger(0, start, start + rows, loaded=rows)],
    )


def test_positions_and_sums_go_on_from_load_to_load(tmp_path: Path) -> None:
    table = open_table(str(tmp_path))
    table.commit(load(table, LOAD_A, 10))
    table.commit(load(table, LOAD_B, 5))

    newest, _ = table.latest()
    assert newest is not None
    assert (newest.version, newest.positions, newest.total_rows) == (2, {0: 15}, 15)
    assert newest.total_hash == f"{15:032x}"
    assert [m.load_id for m in table.history()] == [LOAD_A, LOAD_B]


def test_manifest_survives_its_own_bytes(tmp_path: Path) -> None:
    manifest = load(open_table(str(tmp_path)), LOAD_A, 3)

    assert from_bytes(to_bytes(manifest), "x")[0] == manifest


def test_two_at_once_one_wins_the_other_says_so(tmp_path: Path) -> None:
    """Both plan version 1; the second link is refused and changes nothing (P13)."""
    first = open_table(str(tmp_path))
    second = open_table(str(tmp_path))
    plan_a, plan_b = load(first, LOAD_A, 10), load(second, LOAD_B, 10)
    second.commit(plan_b)

    with pytest.raises(CommitConflict, match="another load committed version 1"):
        first.commit(plan_a)
    assert [m.load_id for m in first.history()] == [LOAD_B]
    assert first.remove_orphans() == [Path(plan_a.files[0].path).name]


def test_orphans_of_a_running_load_stay(tmp_path: Path) -> None:
    """A file meant for the next version may yet be committed; only lost versions are cleaned."""
    table = open_table(str(tmp_path))
    running = load(table, LOAD_A, 10)

    assert table.remove_orphans() == []
    table.commit(running)
    assert table.remove_orphans() == []
    assert (tmp_path / running.files[0].path).exists()


STEPS = [
    "manifest offered",
    "manifest written",
    "head written",
]
KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from test_table import LOAD_A, load
from ottla.lake.tables.opening import open_table
def kill(step):
    if step == {step!r}:
        os.kill(os.getpid(), signal.SIGKILL)
table = open_table({folder!r}, on_step=kill)
table.commit(load(table, LOAD_A, 10))
"""


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_it_neither_loses_nor_doubles(tmp_path: Path, step: str) -> None:
    """kill -9 after each step: the next load goes on from what is visible (P12, P14)."""
    code = KILLED.format(tests=str(Path(__file__).parent), step=step, folder=str(tmp_path))
    killed = subprocess.run([sys.executable, "-c", code], check=False)
    assert killed.returncode == -signal.SIGKILL

    table = open_table(str(tmp_path))
    newest, _ = table.latest()
    visible = step in STEPS[1:]
    assert (newest.total_rows if newest else 0) == (10 if visible else 0)
    if not visible:
        table.commit(load(table, LOAD_B, 10))
    table.remove_orphans()
    newest, _ = table.latest()
    assert newest is not None
    assert (newest.total_rows, newest.positions) == (10, {0: 10})
    assert len(os.listdir(table.store.root / "data")) == 1


def test_other_filesystem_is_refused() -> None:
    with pytest.raises(OttlaError, match="ottla has no storage hdfs:"):
        open_table("hdfs://bucket/table")


def test_filesystem_without_exclusive_links_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a taken name is given away twice, a commit could overwrite another's."""
    monkeypatch.setattr(os, "link", lambda _source, target: Path(target).touch())

    with pytest.raises(OttlaError, match="a taken name was given away again"):
        open_table(str(tmp_path))


def test_broken_manifest_is_named(tmp_path: Path) -> None:
    table = open_table(str(tmp_path))
    table.commit(load(table, LOAD_A, 10))
    path = tmp_path / "_ottla/manifests/00000000000000000001.json"
    path.write_bytes(path.read_bytes()[:-40])

    with pytest.raises(OttlaError, match=r"00000000000000000001\.json can't be read"):
        table.latest()


def test_altered_manifest_is_named(tmp_path: Path) -> None:
    table = open_table(str(tmp_path))
    table.commit(load(table, LOAD_A, 10))
    table.commit(load(table, LOAD_B, 10))
    path = tmp_path / "_ottla/manifests/00000000000000000001.json"
    path.write_bytes(path.read_bytes().replace(b'"flights"', b'"fligths"'))

    with pytest.raises(OttlaError, match=r"00000000000000000001\.json can't be read"):
        list(table.history())


def test_missing_table_is_told(tmp_path: Path) -> None:
    with pytest.raises(OttlaError, match="holds no table of ottla"):
        existing_table(str(tmp_path))


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["letters.txt"], "holds other files (letters.txt) and no table of ottla"),
        (["a", "b", "c", "d"], "holds other files (a, b, c, …)"),
        (["_delta_log", "part-0.parquet"], "holds a Delta table"),
        (["metadata", "data"], "holds an Iceberg table"),
    ],
)
def test_a_folder_with_files_of_others_is_refused_and_left_as_it_is(
    tmp_path: Path, names: list[str], said: str
) -> None:
    """A mistyped target must not grow a table among files of another program."""
    for name in names:
        (tmp_path / name).mkdir()
    with pytest.raises(OttlaError) as refused:
        open_table(str(tmp_path))
    assert said in refused.value.message
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


def test_a_new_disk_and_a_table_begun_are_no_files_of_others(tmp_path: Path) -> None:
    """A file system's own folder does not count, nor what a crash left of a first load."""
    (tmp_path / "lost+found").mkdir()
    assert open_table(str(tmp_path)).latest() == (None, None)
    (tmp_path / "data" / "left.parquet").touch()
    assert open_table(str(tmp_path)).latest() == (None, None)


def test_files_of_a_commit_that_ends_while_orphans_are_removed_stay(tmp_path: Path) -> None:
    """A compaction on top of a load has files of the load's version; its mark may go meanwhile."""
    table = open_table(str(tmp_path))
    made.commit(table, 10)
    load = made.written(table, 5, "a" * 32)
    made.commit(table, 10)
    before = [f"{one.load_id}:2" for one in table.history()]
    answers = iter([before, [*before, f"{load.load_id}:2"]])
    named = {file.path for one in table.history() for file in one.files}
    removed = data_files.remove_orphans(
        table.store, table.running, lambda: next(answers), lambda _version: named
    )
    assert removed == []
    assert all((tmp_path / file.path).exists() for file in load.files)
