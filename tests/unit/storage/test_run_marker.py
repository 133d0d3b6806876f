"""Laws of what tells a lost page cache from a dead process."""

from pathlib import Path

from ottla.storage.directory.run import (
    RUN_MARKER,
    RunMarker,
    read_run_marker,
    write_run_marker,
)
from ottla.storage.disk.filesystem import OsFileSystem
from ottla.storage.disk.memory_filesystem import MemoryFileSystem


def test_page_cache_keeps_its_name_while_the_machine_runs(tmp_path: Path) -> None:
    """Asked twice, of the folder and of one inside, it is the same, and it is told."""
    (tmp_path / "inside").mkdir()
    filesystem = OsFileSystem()
    name = filesystem.page_cache_id(str(tmp_path))
    assert name != ""
    assert name == filesystem.page_cache_id(str(tmp_path / "inside"))
    assert name != filesystem.page_cache_id("/proc")


def test_marker_is_read_as_it_was_written() -> None:
    """And what cannot be read is as good as none."""
    filesystem = MemoryFileSystem()
    filesystem.mkdir("/one")
    marker = RunMarker("boot/7", flushes_first=True)
    write_run_marker(filesystem, "/one", marker)
    assert read_run_marker(filesystem, "/one") == marker
    filesystem.open(f"/one/{RUN_MARKER}").truncate(3)
    assert read_run_marker(filesystem, "/one") is None


def test_unknown_page_cache_keeps_nothing() -> None:
    """A system that does not say which it is may have been restarted."""
    assert RunMarker("", flushes_first=False).kept_all("") is False
