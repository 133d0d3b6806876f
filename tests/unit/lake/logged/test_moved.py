"""Tables whose folder was copied or renamed."""

import shutil
from pathlib import Path

import pytest

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake.tables.opening import open_table
from tests.unit.lake.tables import commit


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_copies_go_their_own_ways(tmp_path: Path, kind: str) -> None:
    """Both are proven, each with what was loaded into it."""
    first, second = tmp_path / "first", tmp_path / "second"
    commit(open_table(str(first), kind), 5)
    shutil.copytree(first, second)
    for folder, count in ((first, 5), (second, 7), (second, 7)):
        commit(open_table(str(folder)), count)
    assert ottla.lake.verify(str(first), bootstrap=None).rows == 20
    assert ottla.lake.verify(str(second), bootstrap=None).rows == 38


def test_a_copy_of_an_iceberg_table_is_refused(tmp_path: Path) -> None:
    """Its metadata names the original's files: a commit would go there, where no data is."""
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    commit(open_table(str(first), "iceberg"), 5)
    shutil.copytree(first, second)
    before = sorted(first.rglob("*"))
    with pytest.raises(OttlaError, match=f"second was copied or renamed: .* files of {first}"):
        commit(open_table(str(second)), 5)
    assert not ottla.lake.verify(str(second), bootstrap=None).proven
    assert sorted(first.rglob("*")) == before
    first.rename(third)
    with pytest.raises(OttlaError, match="third was copied or renamed"):
        commit(open_table(str(third)), 5)
    first.symlink_to(third)
    commit(open_table(str(first)), 5)
    assert ottla.lake.verify(str(first), bootstrap=None).proven
