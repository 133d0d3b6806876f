"""Laws of a full disk: writes are refused with the reason, reads go on, and space heals it."""

import errno

import pytest

from ottla.base.errors import ErrorCode
from ottla.storage.disk.errors import DirectoryFailed, DiskFull
from ottla.storage.disk.memory_filesystem import MemoryFileSystem

from .logs import FOLDER, append, open_log, ranges

LOG = f"{FOLDER}/00000000000000000000.log"


def test_refused_append_leaves_nothing_behind() -> None:
    """A half written batch is cut off; the sequence is not taken up either."""
    filesystem = MemoryFileSystem(capacity_bytes=200)
    log = open_log(filesystem)
    append(log, producer_id=7, producer_epoch=0, sequence=0)
    append(log, producer_id=7, producer_epoch=0, sequence=1)
    for _ in range(2):
        with pytest.raises(DiskFull, match=r"no space left to append.*Free space") as caught:
            append(log, producer_id=7, producer_epoch=0, sequence=2)
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert (log.log_end_offset, filesystem.size(LOG)) == (2, 162)
    assert ranges(log) == [(0, 0), (1, 1)]
    filesystem.capacity_bytes = 300
    appended = append(log, producer_id=7, producer_epoch=0, sequence=2)
    assert (appended.base_offset, appended.duplicate) == (2, False)


def test_refused_roll_leaves_the_log_as_it_was() -> None:
    """A segment that cannot be begun is tried again with the next batch."""
    filesystem = MemoryFileSystem(capacity_bytes=162)
    log = open_log(filesystem, segment_bytes=162)
    append(log)
    append(log)
    with pytest.raises(DiskFull, match="begin a new segment"):
        append(log)
    assert (len(log.segments), ranges(log)) == (1, [(0, 0), (1, 1)])
    filesystem.capacity_bytes = None
    assert append(log).base_offset == 2
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_other_errors_of_a_write_are_fatal_for_the_directory() -> None:
    """A disk that cannot write is not trusted again before a restart."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    filesystem.fault = lambda operation, _: (
        OSError(errno.EIO, "Input/output error") if operation == "append" else None
    )
    with pytest.raises(DirectoryFailed, match="could not append a batch: Input/output error"):
        append(log)


def test_append_that_cannot_be_undone_is_fatal() -> None:
    """With half a batch at the end nothing may be appended any more."""
    filesystem = MemoryFileSystem(capacity_bytes=100)
    log = open_log(filesystem)
    append(log)
    filesystem.fault = lambda operation, _: (
        OSError(errno.EIO, "Input/output error") if operation == "truncate" else None
    )
    with pytest.raises(DirectoryFailed, match="cut off a failed append"):
        append(log)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_failed_fsync_is_never_tried_again(number: int) -> None:
    """A full disk found at fsync has lost pages already: a second fsync would lie (P27)."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    append(log)
    filesystem.fault = lambda operation, _path: (
        OSError(number, "no") if operation == "fsync" else None
    )
    with pytest.raises(DirectoryFailed, match="could not flush"):
        log.flush()
    assert log.flush_state.recovery_point == 0
