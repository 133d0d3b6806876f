"""What is no trouble is not said on the user's terminal."""

from pathlib import Path

import pytest

from ottla.lake.tables.opening import open_table
from tests.unit.lake.tables import commit


def test_old_metadata_that_another_writer_has_deleted_is_no_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of two commits side by side both drop the same file; the library warns of the second."""
    for _ in range(25):
        commit(open_table(str(tmp_path), "iceberg"), 1, partitions=1)
        oldest = min((tmp_path / "metadata").glob("*.metadata.json"))
        if len(list((tmp_path / "metadata").glob("*.metadata.json"))) > 20:
            oldest.unlink()
    files = {path.name[:5] for path in (tmp_path / "metadata").glob("*.metadata.json")}
    assert "00000" not in files
    assert [one.getMessage() for one in caplog.records if one.levelname == "WARNING"] == []
