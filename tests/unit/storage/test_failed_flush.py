"""Laws of a failed flush: what it left in the page cache is never taken for flushed."""

import errno
from pathlib import Path
from random import Random

import pytest

from ottla.storage.disk.errors import DirectoryFailed
from ottla.storage.disk.filesystem import OsFileSystem
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.recovery.leftovers import FAILED_FLUSH

from .logs import FOLDER, append, open_log, ranges


def _log_whose_flush_failed(filesystem: MemoryFileSystem, segment_bytes: int) -> None:
    """Two records on the disk, and three more that a flush did not bring there."""
    log = open_log(filesystem, segment_bytes=segment_bytes)
    filesystem.fsync_directory("/")
    filesystem.fsync_directory("/kafka")
    append(log)
    append(log)
    log.flush()
    for _ in range(3):
        append(log)
    filesystem.fault = lambda operation, path: (
        OSError(errno.EIO, "no") if operation == "fsync" and path.endswith(".log") else None
    )
    with pytest.raises(DirectoryFailed, match="could not flush"):
        log.flush()
    assert log.flush_state.recovery_point == 2
    filesystem.fault = None


@pytest.mark.parametrize("segment_bytes", [162, 1 << 20])
@pytest.mark.parametrize("seed", range(20))
def test_records_of_a_failed_flush_survive_once_a_later_process_has_flushed_them(
    seed: int, segment_bytes: int
) -> None:
    """The process dies, the machine goes on, the next process flushes, the power fails."""
    filesystem = MemoryFileSystem()
    _log_whose_flush_failed(filesystem, segment_bytes)
    filesystem.crash()
    log = open_log(filesystem, recovery_point=2, segment_bytes=segment_bytes)
    log.flush()
    assert log.flush_state.recovery_point == 5
    filesystem.crash(Random(seed))
    again = open_log(filesystem, recovery_point=5, segment_bytes=segment_bytes)
    assert ranges(again) == [(offset, offset) for offset in range(5)]


def test_process_killed_before_it_flushed_again_leaves_the_same_duty_to_the_next() -> None:
    """What was written again is dirty, and any later flush saves it."""
    filesystem = MemoryFileSystem()
    _log_whose_flush_failed(filesystem, 1 << 20)
    for _ in range(2):
        filesystem.crash()
        log = open_log(filesystem, recovery_point=2)
    log.flush()
    filesystem.crash(Random(1))
    assert ranges(open_log(filesystem, recovery_point=5))[-1] == (4, 4)


def test_log_that_was_closed_as_clean_after_a_failed_flush_is_not_believed() -> None:
    """The note counts more than the marker of a clean stop."""
    filesystem = MemoryFileSystem()
    _log_whose_flush_failed(filesystem, 1 << 20)
    filesystem.crash()
    log = open_log(filesystem, recovery_point=2, clean=True)
    assert log.flush_state.recovery_point == 2
    assert not filesystem.exists(f"{FOLDER}/{FAILED_FLUSH}")


def test_closing_a_log_whose_flush_failed_in_a_thread_does_not_flush_it_again() -> None:
    """The second fsync would succeed and save nothing, and the log would pass for clean."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    append(log)
    job = log.prepare_flush()
    filesystem.fault = lambda operation, _path: (
        OSError(errno.EIO, "no") if operation == "fsync" else None
    )
    with pytest.raises(DirectoryFailed):
        job.run()
    filesystem.fault = None
    with pytest.raises(DirectoryFailed, match="could not flush"):
        log.close(clean=True)
    assert log.flush_state.recovery_point == 0


def test_file_written_again_in_place_holds_the_same_bytes(tmp_path: Path) -> None:
    """Also where it is longer than what is written at once, and from the middle on."""
    path = tmp_path / "file"
    content = Random(1).randbytes((2 << 20) + 7)
    path.write_bytes(content)
    OsFileSystem().rewrite(str(path), 1_000)
    OsFileSystem().rewrite(str(path), len(content))
    assert path.read_bytes() == content
