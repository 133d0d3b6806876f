"""How many loads a table holds is known without its manifests, and a crash is no false alarm."""

import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.cli.command import cli
from ottla.lake.store.local import LocalStore
from ottla.lake.tables.markers import Heads
from ottla.lake.tables.opening import open_table
from ottla.lake.tables.own import OwnTable
from ottla.lake.tables.table import CommitConflict
from tests.unit.lake.tables import commit, manifest_path, written
from tests.unit.lake.test_table_races import Stopped


@pytest.fixture
def table(tmp_path: Path) -> OwnTable:
    """Three loads of ten rows of each of two partitions."""
    table = open_table(str(tmp_path))
    for _ in range(3):
        commit(table, 10)
    assert ottla.lake.verify(str(tmp_path), bootstrap=None).problems == []
    return table


def problems(table: OwnTable) -> str:
    found = ottla.lake.verify(str(table.store.root), bootstrap=None)
    assert not found.proven
    return "\n".join(found.problems)


def heads(table: OwnTable) -> list[Path]:
    return sorted((table.store.root / "_ottla/heads").glob("*.json"))


@pytest.mark.parametrize("gone", [[3], [2, 3], [1], [2], [1, 2, 3]])
def test_missing_manifests_are_named_and_nothing_is_built_on_the_rest(
    table: OwnTable, gone: list[int]
) -> None:
    """The newest, all of them, or any other."""
    for version in gone:
        manifest_path(table.store.root, version).unlink()
    found = problems(table)
    for version in gone:
        assert f"the manifest {version:020d}.json is missing" in found
    with pytest.raises(OttlaError, match=r"the manifest 0{19}\d\.json is missing"):
        open_table(str(table.store.root)).latest()
    with pytest.raises(OttlaError, match=r"the manifest 0{19}\d\.json is missing"):
        ottla.lake.files(str(table.store.root))
    shown = CliRunner().invoke(cli, ["lake", "verify", str(table.store.root), "--offline"])
    assert shown.exit_code == 3
    assert "NOT proven" in shown.output


class ListedBefore(LocalStore):
    """A folder whose first listing of heads is from before five more commits."""

    def names(self, folder: str, after: str = "") -> list[str]:
        found = LocalStore.names(self, folder, after)
        if folder == "_ottla/heads/" and max(found) == f"{3:020d}.json":
            for version in range(4, 9):
                Heads(LocalStore(self.root)).write(version, "0" * 64)
        return found


def test_heads_that_commits_remove_meanwhile_are_no_error(table: OwnTable) -> None:
    """A listing names markers that are gone once they are read: newer ones are there by then."""
    heads = Heads(ListedBefore(table.store.root))
    assert [head.version for head in heads.all()] == [5, 6, 7, 8]
    for version in range(5, 9):
        (table.store.root / f"_ottla/heads/{version:020d}.json").unlink()
    Heads(table.store).write(3, None)
    newest = heads.newest()
    assert newest is not None
    assert newest.version == 8


def test_missing_heads_are_named(table: OwnTable) -> None:
    """Without them the number of manifests is not known."""
    manifest_path(table.store.root, 3).unlink()
    shutil.rmtree(table.store.root / "_ottla/heads")
    assert "says how many loads it holds" in problems(table)
    with pytest.raises(OttlaError, match="says how many loads it holds"):
        open_table(str(table.store.root)).latest()


def test_emptied_table_with_files_is_no_empty_table(table: OwnTable) -> None:
    """Heads and manifests are gone; rows without any word on them are no proof."""
    shutil.rmtree(table.store.root / "_ottla")
    (table.store.root / "_ottla/manifests").mkdir(parents=True)
    assert "says how many loads it holds" in problems(table)
    with pytest.raises(OttlaError, match="says how many loads it holds"):
        open_table(str(table.store.root)).latest()


def test_a_load_killed_before_its_head_is_finished_by_the_next(table: OwnTable) -> None:
    """The manifest is linked, so that the load counts; a proof finds nothing wrong with it."""
    heads(table)[-1].unlink()
    found = ottla.lake.verify(str(table.store.root), bootstrap=None)
    assert (found.problems, found.rows) == ([], 60)

    open_table(str(table.store.root)).latest()
    manifest_path(table.store.root, 3).unlink()
    assert "00000000000000000003.json is missing" in problems(table)


def test_a_head_written_late_takes_nothing_back(tmp_path: Path) -> None:
    """A load that stood still between manifest and head, while others committed."""
    behind = open_table(str(tmp_path / "a"))
    commit(behind, 10)
    late = heads(behind)[-1].read_bytes()
    for _ in range(2):
        commit(behind, 10)
    (behind.store.root / "_ottla/heads/00000000000000000001.json").write_bytes(late)
    assert ottla.lake.verify(str(behind.store.root), bootstrap=None).problems == []
    manifest_path(behind.store.root, 3).unlink()
    assert "00000000000000000003.json is missing" in problems(behind)


def test_manifest_of_another_table_under_the_newest_name_is_found(
    table: OwnTable, tmp_path: Path
) -> None:
    """Whole and sealed, following the one before; but not the one that the head knows."""
    other = tmp_path / "other"
    shutil.copytree(table.store.root, other)
    manifest_path(other, 3).unlink()
    for head in sorted((other / "_ottla/heads").glob("*.json"))[2:]:
        head.unlink()
    commit(OwnTable(LocalStore(other)), 20)
    shutil.copy(manifest_path(other, 3), manifest_path(table.store.root, 3))

    assert "00000000000000000003.json: it is not the one" in problems(table)
    with pytest.raises(OttlaError, match=r"00000000000000000003\.json: it is not the one"):
        table.latest()


def test_a_damaged_head_is_named_with_its_remedy(table: OwnTable) -> None:
    path = heads(table)[-1]
    path.write_bytes(path.read_bytes()[:-9])
    assert f"the head {path.name} can't be read" in problems(table)
    with pytest.raises(OttlaError, match=r"remove it, once .* is there"):
        open_table(str(table.store.root)).latest()
    path.unlink()
    assert open_table(str(table.store.root)).latest()[0] is not None
    assert [one.name for one in heads(table)][-1] == path.name


def test_wherever_a_load_stands_still_no_proof_and_no_other_load_fails(tmp_path: Path) -> None:
    """Before each call of the operating system that a commit consists of, killed or only slow."""
    for call in range(1000):
        table = open_table(str(tmp_path / str(call)))
        commit(table, 3)
        verify = partial(ottla.lake.verify, str(table.store.root), bootstrap=None)
        slow = Stopped(partial(table.commit, written(table, 3, "f" * 32)), call)
        if not slow.stopped:
            assert call > 10
            break
        assert verify().problems == [], call
        other = open_table(str(table.store.root))
        for _ in range(2):
            commit(other, 2)
            assert verify().problems == [], call
        with suppress(CommitConflict):
            slow.go_on()
        found = verify()
        assert (found.problems, found.loads) == ([], other.latest()[0].version), call  # type: ignore[union-attr]
        manifest_path(table.store.root, found.loads).unlink()
        assert f"{found.loads:020d}.json is missing" in problems(table)
