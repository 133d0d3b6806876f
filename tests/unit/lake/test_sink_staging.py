"""Between task and driver: small parcels inline, large ones as files, which go in the end."""

from pathlib import Path

import pytest

from ottla.base.errors import OttlaError
from ottla.client import PreparedBatch
from ottla.lake.edges.sink_batches import Parcel, Staging, remove, remove_epochs, unpacked

BATCHES = [PreparedBatch("t", number, 1, b"x" * 100) for number in range(10)]


def parcel(folder: Path | None, name: str, inline_bytes: int) -> Parcel:
    staging = Staging(None if folder is None else str(folder), "query/", name, inline_bytes)
    for batch in BATCHES:
        staging.add(batch)
    return staging.finish()


def test_small_parcels_need_no_folder() -> None:
    found = parcel(None, "1-0-a", 1 << 20)
    assert found.path == ""
    assert list(unpacked(found)) == BATCHES


def test_large_parcels_are_files(tmp_path: Path) -> None:
    found = parcel(tmp_path, "1-0-a", 500)
    assert (found.content, found.path) == (b"", "query/1-0-a.batches")
    assert list(unpacked(found)) == BATCHES
    remove([found])
    with pytest.raises(OttlaError, match="a folder that all executors and the driver see"):
        list(unpacked(found))


def test_large_parcels_without_a_folder_are_refused() -> None:
    with pytest.raises(OttlaError, match="set the option stagingLocation"):
        parcel(None, "1-0-a", 500)


def test_a_failed_attempt_leaves_nothing(tmp_path: Path) -> None:
    staging = Staging(str(tmp_path), "query/", "1-0-a", 0)
    staging.add(BATCHES[0])
    staging.discard()
    assert list(tmp_path.glob("query/*")) == []


def test_files_of_lost_attempts_go_with_their_epoch(tmp_path: Path) -> None:
    """Those of later epochs, and of other queries, stay."""
    kept = [parcel(tmp_path, name, 0) for name in ("1-0-a", "1-0-b", "2-1-a", "3-0-a")]
    remove_epochs(kept[2:3], 2)
    assert [path.name for path in tmp_path.glob("query/*")] == ["3-0-a.batches"]
    remove_epochs([Parcel(b"", "gopher://nowhere", "query/x")], 2)
