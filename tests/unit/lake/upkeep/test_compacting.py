"""Compaction leaves rows, offsets and proof as they are: raced, killed, and in every format."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake.tables.formats import Format
from ottla.lake.tables.opening import existing_table, open_table
from ottla.lake.tables.table import CommitConflict
from tests.unit.lake.forked import exit_code_of
from tests.unit.lake.logged import readers
from tests.unit.lake.tables import commit

FORMATS = pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])


def loaded(folder: Path, kind: Format = "parquet", times: int = 3) -> None:
    """Loads of ten rows of each of two partitions."""
    table = open_table(str(folder), kind)
    for _ in range(times):
        commit(table, 10)


def proven(folder: Path) -> ottla.lake.Verification:
    found = ottla.lake.verify(str(folder), bootstrap=None)
    assert (found.problems, found.replaced) == ([], [])
    return found


def table_rows(folder: Path, kind: str) -> list[tuple[int, int]]:
    by_duckdb = readers.rows_by_duckdb(folder)
    if kind != "parquet":
        assert readers.rows_by_format(folder, kind) == by_duckdb
    return by_duckdb


@FORMATS
def test_small_files_become_one_with_the_same_rows_and_hash(tmp_path: Path, kind: Format) -> None:
    loaded(tmp_path, kind)
    before = proven(tmp_path)
    done = ottla.lake.compact(str(tmp_path), master="here")

    assert (done.removed, done.added, done.rows) == (6, 2, 60)
    assert len(ottla.lake.files(str(tmp_path))) == 2
    after = proven(tmp_path)
    assert (after.rows, after.hash, after.loads) == (before.rows, before.hash, 3)
    assert after.other_commits == {"compaction": 1}
    assert table_rows(tmp_path, kind) == readers.expected(2, 30)
    offsets = pq.read_table(ottla.lake.files(str(tmp_path))[0])["offset"].to_pylist()
    assert offsets == list(range(30))


@FORMATS
def test_loads_go_on_and_compaction_comes_again(tmp_path: Path, kind: Format) -> None:
    """A second one finds nothing; after more loads it takes up their files, too."""
    loaded(tmp_path, kind)
    ottla.lake.compact(str(tmp_path), master="here")
    assert ottla.lake.compact(str(tmp_path), master="here").manifest is None
    loaded(tmp_path, kind, times=2)
    assert ottla.lake.compact(str(tmp_path), master="here").added == 2
    assert table_rows(tmp_path, kind) == readers.expected(2, 50)
    found = proven(tmp_path)
    assert (found.loads, found.other_commits) == (5, {"compaction": 2})


@FORMATS
def test_a_load_that_commits_meanwhile_wins_its_version(tmp_path: Path, kind: Format) -> None:
    """The compaction comes on top of it, and no load takes its files for those of a lost one."""
    loaded(tmp_path, kind)

    def load_meanwhile(step: str) -> None:
        if step == "files written":
            loaded(tmp_path, kind, times=1)

    done = ottla.lake.compact(
        str(tmp_path), master="here", watch=ottla.lake.Observer(on_step=load_meanwhile)
    )
    assert done.manifest is not None
    assert done.manifest.version == 5
    loaded(tmp_path, kind, times=1)
    assert open_table(str(tmp_path)).remove_orphans() == []
    assert table_rows(tmp_path, kind) == readers.expected(2, 50)
    assert proven(tmp_path).uncounted == []


@FORMATS
def test_of_two_compactions_one_says_that_it_lost(tmp_path: Path, kind: Format) -> None:
    loaded(tmp_path, kind)

    def compact_meanwhile(step: str) -> None:
        if step == "files written":
            ottla.lake.compact(str(tmp_path), master="here")

    with pytest.raises(CommitConflict, match=r"removed data/v0000000001-.* first"):
        ottla.lake.compact(
            str(tmp_path), master="here", watch=ottla.lake.Observer(on_step=compact_meanwhile)
        )
    assert table_rows(tmp_path, kind) == readers.expected(2, 30)
    assert proven(tmp_path).uncounted == []


def test_a_writer_that_starts_meanwhile_does_not_stop_it(tmp_path: Path) -> None:
    """Compaction changes no position, so that a new epoch is nothing to it."""
    loaded(tmp_path)

    def start(step: str) -> None:
        if step == "files written":
            table = open_table(str(tmp_path))
            newest, digest = table.latest()
            assert newest is not None
            table.commit(
                ottla.lake.model.manifest.next_manifest(
                    newest,
                    digest,
                    load_id="e" * 32,
                    topic=newest.topic,
                    topic_id=None,
                    cluster_id="c",
                    created_ms=1,
                    files=(),
                    ledgers=(),
                    kind="epoch",
                )
            )

    done = ottla.lake.compact(
        str(tmp_path), master="here", watch=ottla.lake.Observer(on_step=start)
    )
    assert done.manifest is not None
    assert (done.manifest.writer_epoch, proven(tmp_path).rows) == (1, 60)


STEPS = ["planned", "files written", "manifest offered", "manifest written", "head written"]
KILLED = """
import os, signal
import ottla.lake
def kill(step):
    if step == {step!r}:
        os.kill(os.getpid(), signal.SIGKILL)
ottla.lake.compact({folder!r}, master="here", watch=ottla.lake.Observer(on_step=kill))
"""


@FORMATS
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_it_neither_loses_nor_doubles(
    tmp_path: Path, kind: Format, step: str
) -> None:
    """kill -9 after each step: what is visible is the table before or after, whole (P12)."""
    loaded(tmp_path, kind)
    code = KILLED.format(step=step, folder=str(tmp_path))
    assert exit_code_of(code) == -signal.SIGKILL
    assert len(ottla.lake.files(str(tmp_path))) == (2 if step in STEPS[3:] else 6)
    assert table_rows(tmp_path, kind) == readers.expected(2, 30)

    loaded(tmp_path, kind, times=1)
    ottla.lake.compact(str(tmp_path), master="here")
    assert len(ottla.lake.files(str(tmp_path))) == 2
    assert table_rows(tmp_path, kind) == readers.expected(2, 40)
    assert (proven(tmp_path).rows, proven(tmp_path).uncounted) == (80, [])


def damage_missing(path: Path) -> None:
    path.unlink()


def damage_other_rows(path: Path) -> None:
    rows = pq.read_table(path)
    pq.write_table(rows.slice(1), path, store_schema=False)


def damage_flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [damage_missing, damage_other_rows, damage_flipped])
def test_damaged_files_are_not_compacted(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    """A compaction would make the loss look like the truth; it names the file and stops."""
    loaded(tmp_path)
    first = existing_table(str(tmp_path)).live_files()[0].path
    damage(tmp_path / first)
    with pytest.raises(OttlaError, match=f"{first} .*nothing was committed"):
        ottla.lake.compact(str(tmp_path), master="here")
    assert existing_table(str(tmp_path)).latest()[0].version == 3
    assert len(os.listdir(tmp_path / "data")) == 6 - (damage is damage_missing)


def test_where_no_table_is_none_is_made(tmp_path: Path) -> None:
    with pytest.raises(OttlaError, match="no table"):
        ottla.lake.compact(str(tmp_path / "mistyped"), master="here")
    assert not (tmp_path / "mistyped").exists()


def test_sizes_of_files_and_row_groups_are_kept(tmp_path: Path) -> None:
    loaded(tmp_path)
    size = max(file.size_bytes for file in existing_table(str(tmp_path)).live_files())
    assert ottla.lake.compact(str(tmp_path), master="here", target_size=size).manifest is None
    done = ottla.lake.compact(
        str(tmp_path), master="here", target_size=2 * size + 100, row_group_size=1
    )
    assert (done.removed, done.added) == (4, 2)
    counts = [pq.read_metadata(one).num_row_groups for one in ottla.lake.files(str(tmp_path))]
    assert counts == [1, 1, 2, 2]
