"""A load commits only files that are there, as their tasks described them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ottla.base.errors import OttlaError
from ottla.lake.model.manifest import DataFile
from ottla.lake.store.local import LocalStore
from ottla.lake.tables.file_check import require_files


@pytest.fixture
def file(tmp_path: Path) -> DataFile:
    pq.write_table(pa.table({"offset": [1, 2, 3]}), tmp_path / "part.parquet")
    size = (tmp_path / "part.parquet").stat().st_size
    return DataFile("part.parquet", 0, 0, 3, 3, size, "0" * 32, "0" * 64)


def test_files_as_described_pass(tmp_path: Path, file: DataFile) -> None:
    require_files(LocalStore(tmp_path), [file])


def test_each_file_is_looked_at(tmp_path: Path, file: DataFile) -> None:
    with pytest.raises(OttlaError, match=r"wrote other\.parquet, which is missing"):
        require_files(LocalStore(tmp_path), [file, replace(file, path="other.parquet")])


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: path.unlink(), "is missing"),
        (lambda path: path.write_bytes(b""), "has 0 bytes instead of"),
        (lambda path: path.write_bytes(bytes(path.stat().st_size)), "can't be read"),
    ],
)
def test_another_file_is_refused_by_name_with_the_remedy(
    tmp_path: Path, file: DataFile, damage: Callable[[Path], None], said: str
) -> None:
    damage(tmp_path / "part.parquet")
    with pytest.raises(OttlaError) as refused:
        require_files(LocalStore(tmp_path), [file])
    assert f"wrote part.parquet, which {said}" in refused.value.message
    assert "one folder that the driver and all workers share" in refused.value.message


def test_rows_that_the_footer_does_not_count_are_missed(tmp_path: Path, file: DataFile) -> None:
    with pytest.raises(OttlaError, match="has 3 rows instead of 4"):
        require_files(LocalStore(tmp_path), [replace(file, rows=4)])
