"""A load into Delta or Iceberg counts once their log names it: whole, once, or not at all."""

import json
import os
import signal
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitStateUnknownException

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake.job.output import ParquetOutput
from ottla.lake.model.manifest import Manifest, next_manifest
from ottla.lake.store.local import LocalStore
from ottla.lake.tables.delta import DeltaLog
from ottla.lake.tables.format_log import TableLog
from ottla.lake.tables.iceberg import IcebergLog
from ottla.lake.tables.iceberg_catalog import CatalogSettings
from ottla.lake.tables.logged import LoggedTable
from ottla.lake.tables.opening import existing_table, open_table
from ottla.lake.tables.table import CommitConflict, WriterFenced
from tests.unit.lake.forked import exit_code_of
from tests.unit.lake.logged import readers
from tests.unit.lake.tables import commit, data_file, rows, written

BOTH = pytest.mark.parametrize("kind", ["delta", "iceberg"])
LOAD_A, LOAD_B = "a" * 32, "b" * 32


def proven(folder: Path) -> ottla.lake.Verification:
    found = ottla.lake.verify(str(folder), bootstrap=None)
    assert (found.problems, found.replaced) == ([], [])
    return found


@BOTH
def test_what_loads_committed_is_what_others_read(tmp_path: Path, kind: str) -> None:
    """Each row once, to the format's own reader and to DuckDB over the list of files (P13)."""
    table = open_table(str(tmp_path), kind)
    for _ in range(3):
        commit(table, 10)

    newest, _ = open_table(str(tmp_path)).latest()
    assert newest is not None
    assert (newest.version, newest.positions, newest.total_rows) == (3, {0: 30, 1: 30}, 60)
    assert readers.rows_by_format(tmp_path, kind) == readers.expected(2, 30)
    assert readers.rows_by_duckdb(tmp_path) == readers.expected(2, 30)
    assert (proven(tmp_path).rows, table.remove_orphans()) == (60, [])


def test_positions_stand_in_delta_for_each_version(tmp_path: Path) -> None:
    """Readers find in the log's own words what a version holds."""
    table = open_table(str(tmp_path), "delta")
    commit(table, 10)
    commit(table, 5)

    history = DeltaTable(str(tmp_path)).history()
    assert [entry.get("ottla.positions") for entry in history] == [
        '{"0": 15, "1": 15}',
        '{"0": 10, "1": 10}',
        None,
    ]
    assert [entry.get("ottla.version") for entry in history] == ["2", "1", None]
    assert history[0]["ottla.digest"] == table.latest()[1]


def test_positions_stand_in_iceberg_for_each_snapshot(tmp_path: Path) -> None:
    table = open_table(str(tmp_path), "iceberg")
    commit(table, 10)
    commit(table, 5)

    summaries = [snapshot.summary for snapshot in readers.iceberg(tmp_path).snapshots()]
    assert [one["ottla.positions"] for one in summaries if one] == [
        '{"0": 10, "1": 10}',
        '{"0": 15, "1": 15}',
    ]
    assert readers.iceberg(tmp_path).properties["ottla.version"] == "2"


@BOTH
def test_queries_skip_files_by_the_bounds_in_the_log(tmp_path: Path, kind: str) -> None:
    """Bounds come from the footers, so that a query for few offsets plans few files."""
    table = open_table(str(tmp_path), kind)
    for _ in range(4):
        commit(table, 10, partitions=1)

    if kind == "delta":
        found = DeltaTable(str(tmp_path)).get_add_actions(flatten=True)
        bounds = [
            (low, high)
            for low, high in zip(
                found.column("min.offset").to_pylist(),
                found.column("max.offset").to_pylist(),
                strict=True,
            )
        ]
        assert sorted(bounds) == [(0, 9), (10, 19), (20, 29), (30, 39)]
    else:
        planned = readers.iceberg(tmp_path).scan(row_filter="offset >= 35").plan_files()
        assert len(list(planned)) == 1


@BOTH
def test_two_at_once_one_wins_the_other_says_so(tmp_path: Path, kind: str) -> None:
    """Both plan load 1; the one that is late has changed nothing, and its manifest goes (P13)."""
    first, second = open_table(str(tmp_path), kind), open_table(str(tmp_path), kind)
    mine, others = written(first, 10, LOAD_A), written(second, 10, LOAD_B)
    second.commit(others)

    with pytest.raises(CommitConflict, match="another load committed version 1"):
        first.commit(mine)
    assert [one.load_id for one in first.history()] == [LOAD_B]
    assert len(os.listdir(tmp_path / "_ottla/manifests")) == 1
    assert first.remove_orphans() == sorted(Path(file.path).name for file in mine.files)
    assert proven(tmp_path).rows == 20


@BOTH
def test_load_that_read_an_older_version_is_late(tmp_path: Path, kind: str) -> None:
    """Versions that went by while it ran are no way in: neither library refuses that by itself."""
    first = open_table(str(tmp_path), kind)
    mine = written(first, 10, LOAD_A)
    second = open_table(str(tmp_path), kind)
    for _ in range(3):
        commit(second, 10)

    with pytest.raises(CommitConflict):
        first.commit(mine)
    first.remove_orphans()
    assert readers.rows_by_format(tmp_path, kind) == readers.expected(2, 30)


@BOTH
def test_the_same_load_twice_counts_once(tmp_path: Path, kind: str) -> None:
    """A commit that is repeated, as after a lost answer, finds that it was done."""
    table = open_table(str(tmp_path), kind)
    manifest = written(table, 10, LOAD_A)
    table.commit(manifest)
    table.commit(manifest)

    assert readers.rows_by_format(tmp_path, kind) == readers.expected(2, 10)
    assert proven(tmp_path).loads == 1


@BOTH
def test_writer_of_an_older_epoch_is_fenced(tmp_path: Path, kind: str) -> None:
    old, new = open_table(str(tmp_path), kind), open_table(str(tmp_path), kind)
    commit(old, 10)
    mine = written(old, 10, LOAD_A)
    new.commit(epoch_of(new))

    with pytest.raises(WriterFenced, match="a writer with epoch 1 has taken"):
        old.commit(mine)
    old.remove_orphans()
    commit(new, 10)
    found = proven(tmp_path)
    assert (found.loads, found.other_commits, found.rows) == (2, {"epoch": 1}, 40)


def epoch_of(table: Any) -> Manifest:
    before, digest = table.latest()
    return next_manifest(
        before,
        digest,
        load_id=uuid.uuid4().hex,
        topic=before.topic,
        topic_id=None,
        cluster_id="c",
        created_ms=1,
        files=[],
        ledgers=[],
        kind="epoch",
    )


def compacted(table: Any, partition: int = 0) -> Manifest:
    """The manifest of a compaction of all files of one partition into one."""
    before, digest = table.latest()
    removed = [file for file in table.live_files() if file.partition == partition]
    start, end = removed[0].start, removed[-1].end
    load_id = uuid.uuid4().hex
    path = f"{table.file_stem(before.version + 1, load_id, partition, start)}-c.parquet"
    output = ParquetOutput(table.store, path)
    output.write(rows(partition, start, end))
    output.finish()
    return next_manifest(
        before,
        digest,
        load_id=load_id,
        topic=before.topic,
        topic_id=None,
        cluster_id="c",
        created_ms=1,
        files=[data_file(path, partition, start, end, output)],
        ledgers=[],
        kind="compaction",
        removed=removed,
    )


@BOTH
def test_compaction_removes_and_adds_in_one_step(tmp_path: Path, kind: str) -> None:
    table = open_table(str(tmp_path), kind)
    for _ in range(3):
        commit(table, 10)
    table.commit(compacted(table))

    assert len(table.live_paths()) == 4
    assert readers.rows_by_format(tmp_path, kind) == readers.expected(2, 30)
    found = proven(tmp_path)
    assert (found.loads, found.other_commits, found.rows) == (3, {"compaction": 1}, 60)


@BOTH
def test_compaction_of_files_that_others_replaced_is_refused(tmp_path: Path, kind: str) -> None:
    """Delta's log takes a removal of what is gone without a word: rows would be there twice."""
    table = open_table(str(tmp_path), kind)
    for _ in range(3):
        commit(table, 10)
    mine = compacted(table)
    replace_by_others(tmp_path, kind)

    with pytest.raises(OttlaError, match=r"does not have data/v0000000001-.* any more"):
        table.commit(mine)
    assert readers.rows_by_format(tmp_path, kind) == readers.expected(2, 30)


def replace_by_others(folder: Path, kind: str) -> None:
    """Compact the whole table, with the format's own means."""
    if kind == "delta":
        DeltaTable(str(folder)).optimize.compact()
    else:
        table = readers.iceberg(folder)
        table.overwrite(table.scan().to_arrow())


@BOTH
def test_commits_of_others_are_no_obstacle(tmp_path: Path, kind: str) -> None:
    """Others commit between plan and commit of a load, which follows them."""
    table = open_table(str(tmp_path), kind)
    commit(table, 10)
    manifest = written(table, 10, LOAD_A)
    replace_by_others(tmp_path, kind)
    table.commit(manifest)

    assert readers.rows_by_format(tmp_path, kind) == readers.expected(2, 20)
    found = ottla.lake.verify(str(tmp_path), bootstrap=None)
    assert (found.problems, found.rows, len(found.replaced)) == ([], 40, 1)


class DeltaAnswerLost(DeltaLog):
    """Commits, and is told that it failed; or fails before it commits."""

    def __init__(self, store: LocalStore, *, is_done: bool) -> None:
        super().__init__(store)
        self._is_done = is_done
        self.lost = 0

    def _try(self, *arguments: Any) -> None:
        if self._is_done or self.lost:
            super()._try(*arguments)
        self.lost += 1
        if self.lost == 1:
            raise DeltaError("connection reset")


class IcebergAnswerLost(IcebergLog):
    """The same for Iceberg."""

    def __init__(self, store: LocalStore, *, is_done: bool) -> None:
        super().__init__(store, CatalogSettings.of(store, {}, {}))
        self._is_done = is_done
        self.lost = 0

    def _try(self, *arguments: Any) -> None:
        if self._is_done or self.lost:
            super()._try(*arguments)
        self.lost += 1
        if self.lost == 1:
            raise CommitStateUnknownException("gateway timeout")


@pytest.mark.parametrize("is_done", [True, False], ids=["done", "not done"])
@pytest.mark.parametrize("lossy", [DeltaAnswerLost, IcebergAnswerLost])
def test_lost_answer_is_found_out(
    tmp_path: Path, lossy: Callable[..., TableLog], is_done: bool
) -> None:
    """The log says whether the commit was done, by its digest; it is done once."""
    kind = "delta" if lossy is DeltaAnswerLost else "iceberg"
    commit(open_table(str(tmp_path), kind), 10)
    log = lossy(LocalStore(tmp_path), is_done=is_done)
    table = LoggedTable(LocalStore(tmp_path), log).writable()
    commit(table, 10)

    assert log.lost == (1 if is_done else 2)  # type: ignore[attr-defined]  # Of both of them.
    assert readers.rows_by_format(tmp_path, kind) == readers.expected(2, 20)
    assert proven(tmp_path).loads == 2


STEPS = [
    "manifest stored", "manifest offered", "manifest written", "head written",
]  # fmt: skip
KILLED = """
import os, signal
from tests.unit.lake.tables import written
from ottla.lake.tables.opening import open_table
def kill(step):
    if step == {step!r}:
        os.kill(os.getpid(), signal.SIGKILL)
table = open_table({folder!r}, {kind!r}, on_step=kill)
table.commit(written(table, 10, {load_id!r}))
"""


@BOTH
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_it_neither_loses_nor_doubles(
    tmp_path: Path, kind: str, step: str
) -> None:
    """kill -9 after each step: the next load goes on from what is visible (P12, P14)."""
    code = KILLED.format(step=step, folder=str(tmp_path), kind=kind, load_id=LOAD_A)
    assert exit_code_of(code) == -signal.SIGKILL

    table = open_table(str(tmp_path))
    newest, _ = table.latest()
    is_visible = step in STEPS[2:]
    assert (newest.total_rows if newest else 0) == (20 if is_visible else 0)
    if not is_visible:
        commit(table, 10)
    table.remove_orphans()
    assert readers.rows_by_format(tmp_path, kind) == readers.expected(2, 10)
    assert len(os.listdir(tmp_path / "data")) == 2
    assert len(os.listdir(tmp_path / "_ottla/manifests")) == 1
    assert (proven(tmp_path).rows, proven(tmp_path).uncounted) == (20, [])


@BOTH
def test_format_is_that_of_the_first_load(tmp_path: Path, kind: str) -> None:
    """Later loads find it out, and another one is refused."""
    commit(open_table(str(tmp_path), kind), 10)

    assert open_table(str(tmp_path)).format == kind
    assert existing_table(str(tmp_path)).format == kind
    other = "iceberg" if kind == "delta" else "delta"
    for wanted in ("parquet", other):
        with pytest.raises(OttlaError, match=f"has format {kind}; a table of format {wanted}"):
            open_table(str(tmp_path), wanted)


@BOTH
def test_parquet_table_stays_one(tmp_path: Path, kind: str) -> None:
    commit(open_table(str(tmp_path)), 10)
    with pytest.raises(OttlaError, match=f"has format parquet; a table of format {kind}"):
        open_table(str(tmp_path), kind)


@BOTH
def test_table_of_others_is_refused(tmp_path: Path, kind: str) -> None:
    mark = tmp_path / ("_delta_log" if kind == "delta" else "metadata")
    mark.mkdir()
    with pytest.raises(OttlaError, match=r"holds an? (Delta|Iceberg) table and no table of ottla"):
        open_table(str(tmp_path), kind)


@BOTH
def test_path_that_its_programs_misread_is_refused(tmp_path: Path, kind: str) -> None:
    """delta-rs decodes %20 of a path, pyiceberg ends it at #."""
    for name in ("a%20b", "a#b"):
        with pytest.raises(OttlaError, match="for parts of a URL; choose another folder"):
            open_table(str(tmp_path / name), kind)
        assert os.listdir(tmp_path) == []


def test_iceberg_table_elsewhere_is_in_the_catalog_that_options_name(tmp_path: Path) -> None:
    """Later loads need not name it again; what is secret is not stored."""
    options = {
        "catalog.type": "sql",
        "catalog.uri": f"sqlite:///{tmp_path}/elsewhere.db",
        "catalog.table": "lake.flights",
        "catalog.s3.secret-access-key": "hunter2",
    }
    folder = tmp_path / "table"
    commit(open_table(str(folder), "iceberg", options), 10)
    commit(open_table(str(folder)), 10)

    stored = json.loads((folder / "_ottla/format.json").read_text())
    assert stored["settings"]["table"] == ["lake", "flights"]
    assert "hunter2" not in json.dumps(stored)
    assert not (folder / "_ottla/catalog.db").exists()
    assert proven(folder).rows == 40


def test_password_of_a_catalog_is_not_stored(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "t")
    options = {"uri": "postgresql://me:hunter2@db:5432/lake?sslmode=require", "type": "sql"}
    assert CatalogSettings.of(store, options, {}).stored()["properties"] == {
        "uri": "postgresql://me@db:5432/lake?sslmode=require",
        "type": "sql",
    }


def test_an_iceberg_namespace_that_another_process_makes_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both look for it before either makes it: the database refuses the second, which goes on."""
    table = open_table(str(tmp_path), "iceberg")
    with readers.iceberg_catalog(tmp_path) as catalog:
        catalog.create_namespace("ottla")
    looked_for = []

    def exists(catalog: SqlCatalog, name: Any) -> bool:
        looked_for.append(name)
        return len(looked_for) > 1 and found(catalog, name)

    found = SqlCatalog.namespace_exists
    monkeypatch.setattr(SqlCatalog, "namespace_exists", exists)
    commit(table, 10)
    assert proven(tmp_path).rows == 20
