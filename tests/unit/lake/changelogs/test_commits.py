"""Commits of a changelog table have laws, and a manifest that breaks one is not believed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake.job.output import ParquetOutput
from ottla.lake.model.manifest import (
    Changelog,
    DataFile,
    Manifest,
    from_bytes,
    next_manifest,
    to_bytes,
)
from ottla.lake.store.local import LocalStore
from ottla.lake.tables.opening import open_table
from ottla.lake.tables.own import OwnTable
from ottla.lake.write.changelog_state import (
    checkpoints,
    hidden_stem,
    read_state_of,
    write_checkpoint,
)
from ottla.ledger.partition import PartitionLedger
from tests.unit.lake.tables import TOPIC, forge, manifest_path, rows


def file_at(table: OwnTable, path: str, start: int, end: int) -> DataFile:
    output = ParquetOutput(table.store, path)
    output.write(rows(0, start, end))
    output.finish()
    return DataFile(
        path, 0, 0, 0, output.rows, output.size_bytes, f"{output.hash:032x}", output.sha256
    )


def commit(table: OwnTable, start: int, end: int) -> Manifest:
    """Take the keys of [start, end) in; every key is new, and is hidden at once as well."""
    before, digest = table.latest()
    state = read_state_of(table, before, digest)
    version = before.version + 1 if before else 1
    load_id = f"{version:032x}"
    visible = file_at(table, f"{table.file_stem(version, load_id, 0, 0)}-a.parquet", 0, end - 1)
    hidden = file_at(table, f"{hidden_stem(version, load_id, 0)}-a.parquet", end - 1, end)
    manifest = next_manifest(
        before,
        digest,
        load_id=load_id,
        topic=TOPIC,
        topic_id=None,
        cluster_id="c",
        created_ms=1,
        files=[visible],
        ledgers=[PartitionLedger(0, start, end, loaded=end - start)],
        kind="changelog",
        removed=list(state.visible.values()),
        changelog=Changelog("latest", 1),
        hidden=[hidden],
        removed_hidden=list(state.hidden.values()),
    )
    table.commit(manifest)
    return manifest


@pytest.fixture
def table(tmp_path: Path) -> OwnTable:
    """Two commits of a table of one bucket."""
    table: OwnTable = open_table(str(tmp_path))
    table.store.prepare(("_ottla/hidden/",))
    commit(table, 0, 10)
    commit(table, 10, 12)
    return table


def test_the_state_is_what_the_last_commit_of_each_bucket_left(table: OwnTable) -> None:
    newest, digest = table.latest()
    assert newest is not None
    assert (newest.positions, newest.rows, newest.total_rows) == ({0: 12}, 11, 11)
    state = read_state_of(table, newest, digest)
    assert (state.visible, state.hidden) == ({0: newest.files[0]}, {0: newest.hidden[0]})
    assert list(table.live_files()) == [newest.files[0]]
    assert from_bytes(to_bytes(newest), "x")[0] == newest


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another number of buckets": (
        lambda m: m["changelog"].update(buckets=2),
        "its kind of table is latest of each key in 2 buckets",
    ),
    "no changelog any more": (lambda m: m.update(changelog=None), "does not say what it keeps"),
    "a load": (lambda m: m.update(kind="load"), "it is a load, which no changelog table has"),
    "a bucket that is none": (lambda m: m["files"][0].update(partition=1), "of bucket 1"),
    "two files of a bucket": (
        lambda m: m["hidden"].append({**m["hidden"][0], "path": "_ottla/hidden/x.parquet"}),
        "two files of one bucket",
    ),
    "more rows than changes": (lambda m: m["removed_hidden"].pop(), "and has read 2"),
    "other ranges": (lambda m: m["ledgers"][0].update(start=9), "the loads before it end at 10"),
    "a hidden file that readers see": (
        lambda m: m["hidden"][0].update(path="data/x.parquet"),
        "which is not in the table's folder _ottla/hidden",
    ),
}


@pytest.mark.parametrize(("change", "said"), CHANGES.values(), ids=CHANGES.keys())
def test_a_forged_manifest_breaks_a_law(
    table: OwnTable, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    forge(manifest_path(table.store.root, 2), change)
    assert said in "\n".join(ottla.lake.verify(str(table.store.root), bootstrap=None).problems)
    with pytest.raises(OttlaError, match=said):
        table.latest()


def test_a_hidden_file_is_removed_once(table: OwnTable) -> None:
    """The sums alone would not show that another file is meant."""
    newest, digest = table.latest()
    assert newest is not None
    other = replace(newest.hidden[0], path="_ottla/hidden/x.parquet")
    table.commit(
        replace(
            newest,
            version=3,
            previous=digest,
            load_id="c" * 32,
            files=(),
            ledgers=(PartitionLedger(0, 12, 12),),
            rows=0,
            hash="0" * 32,
            removed=(),
            hidden=(),
            removed_hidden=(other,),
        )
    )
    said = "it removes _ottla/hidden/x.parquet, which does not count like that"
    assert said in "\n".join(ottla.lake.verify(str(table.store.root), bootstrap=None).problems)
    with pytest.raises(OttlaError, match=said):
        read_state_of(table, newest, digest)


def test_an_unknown_kind_of_table_is_no_manifest(table: OwnTable) -> None:
    """A later version's table is not touched."""
    newest, _ = table.latest()
    assert newest is not None
    assert newest.changelog is not None
    unknown = replace(newest, changelog=replace(newest.changelog, keeps="all"))  # type: ignore[arg-type]
    with pytest.raises(OttlaError, match="keeps is 'all'"):
        from_bytes(to_bytes(unknown), "x")


def _reads(table: OwnTable, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the manifests that reading the state takes."""
    found: list[str] = []
    read = LocalStore.read

    def noted(store: LocalStore, path: str) -> bytes:
        found.append(path)
        return read(store, path)

    newest, digest = table.latest()
    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "read", noted)
        read_state_of(table, newest, digest)
    return [path for path in found if "manifests/" in path]


def test_few_manifests_are_read_however_many_there_are(
    table: OwnTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By checkpoints of the state; without them the state is the same."""
    for at in range(12, 40):
        commit(table, at, at + 1)
        assert len(_reads(table, monkeypatch)) <= 10
    newest, digest = table.latest()
    by_checkpoint = read_state_of(table, newest, digest)
    (tmp := table.store.root / "_ottla/states").joinpath("not-a-checkpoint").touch()
    for path in tmp.glob("*.json"):
        path.write_bytes(path.read_bytes().replace(b'"rows": 1', b'"rows": 2', 1))
    without = read_state_of(table, newest, digest)
    assert (by_checkpoint.visible, by_checkpoint.hidden) == (without.visible, without.hidden)
    assert len(without.behind) == 30


def test_a_checkpoint_of_another_table_decides_nothing(table: OwnTable) -> None:
    """As after a rollback to a copy: its digest is not that of the manifest of its version."""
    for at in range(12, 22):
        commit(table, at, at + 1)
    newest, digest = table.latest()
    wanted = read_state_of(table, newest, digest)
    (found,) = checkpoints(table.store)
    strange = replace(found.standing, digest="0" * 64)
    write_checkpoint(table.store, replace(found, standing=strange, visible={}))
    again = read_state_of(table, newest, digest)
    assert (again.visible, again.hidden) == (wanted.visible, wanted.hidden)
