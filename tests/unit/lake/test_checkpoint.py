"""A load reads what came since the last checkpoint, and none of it is believed unseen."""

import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake.tables.opening import open_table
from ottla.lake.tables.own import OwnTable
from tests.unit.lake.tables import commit, edit, forge, manifest_path

LOADS = 25


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "table"
    table = open_table(str(folder))
    for _ in range(LOADS):
        commit(table, 2)
    return folder


@pytest.fixture
def table(made: Path, tmp_path: Path) -> OwnTable:
    shutil.copytree(made, tmp_path / "table")
    return open_table(str(tmp_path / "table"))


def checkpoints(table: OwnTable) -> list[Path]:
    return sorted((table.store.root / "_ottla/checkpoints").glob("*.json"))


def files_read(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> Counter[str]:
    """How many files of each folder `work` reads."""
    counts: Counter[str] = Counter()
    read = Path.read_bytes

    def counted(path: Path) -> bytes:
        counts[path.parent.name] += 1
        return read(path)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", counted)
        work()
    return counts


def test_a_load_reads_only_what_is_new_since_the_checkpoint(
    table: OwnTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest that it ends with, and five behind it; removing orphans reads none."""
    counts = files_read(monkeypatch, table.latest)
    assert (counts["manifests"], counts["checkpoints"]) == (6, 1)
    assert files_read(monkeypatch, table.remove_orphans)["manifests"] <= 6


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped", "another format", "other fields"])
def test_missing_or_damaged_checkpoints_cost_only_time(table: OwnTable, damage: str) -> None:
    """Positions, proof and the next load are the same without them."""
    expected = table.latest()
    assert expected[0] is not None
    assert expected[0].positions == {0: 50, 1: 50}
    for path in checkpoints(table):
        content = path.read_bytes()
        match damage:
            case "missing":
                path.unlink()
            case "cut":
                path.write_bytes(content[:-9])
            case "flipped":
                bit = random.Random(1).randrange(8 * len(content))
                flipped = bytearray(content)
                flipped[bit // 8] ^= 1 << bit % 8
                path.write_bytes(flipped)
            case "another format":
                path.write_bytes(content.replace(b'"format": 3', b'"format": 4'))
            case "other fields":
                forge(path, lambda fields: fields.pop("positions"))
    assert table.latest() == expected
    found = ottla.lake.verify(str(table.store.root), bootstrap=None).problems
    for path, problem in zip(checkpoints(table), found, strict=True):
        assert path.name in problem
        path.unlink()
    assert table.remove_orphans() == []
    commit(table, 2)
    assert ottla.lake.verify(str(table.store.root), bootstrap=None).problems == []
    for _ in range(5):
        commit(table, 2)
    assert checkpoints(table)[-1].name == f"{30:020d}.json"


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["positions"].update({"0": 5}),
        lambda c: c.update(total_rows=5),
        lambda c: c.update(total_hash="0" * 32),
        lambda c: c.update(digest="0" * 64),
        lambda c: c.update(topic="other"),
        lambda c: c.update(version=19),
    ],
)
def test_a_checkpoint_that_its_manifest_contradicts_is_passed_over(
    table: OwnTable, change: Callable[[dict[str, Any]], object]
) -> None:
    """With a right digest, too: the manifest of its version says the same, or it is not used."""
    expected = table.latest()
    assert len(checkpoints(table)) == 2
    for path in checkpoints(table):
        forge(path, change)
    assert table.latest() == expected


def test_manifests_behind_the_checkpoint_are_compared_by_verify(table: OwnTable) -> None:
    """A load does not read them; that none is missing it sees all the same."""
    edit(manifest_path(table.store.root, 7), lambda fields: fields.update(rows=1))
    assert table.latest()[0] is not None
    found = ottla.lake.verify(str(table.store.root), bootstrap=None)
    assert f"{7:020d}.json" in "".join(found.problems)
    manifest_path(table.store.root, 7).unlink()
    with pytest.raises(OttlaError, match=f"{7:020d}.json is missing"):
        table.latest()


def test_orphans_of_old_versions_are_removed_with_a_checkpoint_too(table: OwnTable) -> None:
    """A loser's file, and one of a task attempt that did not count, both behind the checkpoint."""
    file = Path(ottla.lake.files(str(table.store.root))[0])
    attempt = file.with_name(f"{file.stem[:-12]}0123456789ab.parquet")
    loser = file.with_name(file.name.replace(file.name[12:44], "e" * 32))
    for path in (attempt, loser):
        shutil.copy(file, path)
    assert table.remove_orphans() == sorted([attempt.name, loser.name])
    assert ottla.lake.verify(str(table.store.root), bootstrap=None).uncounted == []
    assert len(list((table.store.root / "data").iterdir())) == 2 * LOADS
