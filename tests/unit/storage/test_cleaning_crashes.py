"""Laws of a crash in the middle of a cleaning (S29): after every single change to the disk the next
start shows the latest value of each key, at its offset, and no key that was deleted comes back.
"""

import contextlib
import errno
import os
from dataclasses import replace
from random import Random

import pytest

from ottla.storage.disk.errors import StorageError
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.files.names import CLEANED_SUFFIX, SWAP_SUFFIX
from ottla.storage.log.log import Log
from ottla.storage.log.range_account import Accounting

from .compacting import DAY_MS, add, clean, compacted_log, found

CHANGES = frozenset({"append", "fsync", "truncate", "rename", "unlink", "open"})


class Stopped(OSError):
    """The process ends here."""


def dirty() -> tuple[MemoryFileSystem, Log, int]:
    """A log that was cleaned once, dirty again, with a tombstone whose time is over; and the time.

    Several replacements of several segments each.
    """
    filesystem = MemoryFileSystem()
    log = compacted_log(filesystem, segment_bytes=250)
    for number in range(6):
        add(log, [(b"key%d" % (number % 3), b"old%d" % number), (b"gone", b"here")])
    add(log, [(b"gone", None), (b"key0", b"older")])
    add(log, [(b"key1", b"x" * 300)])
    clean(log, now_ms=10_000)
    for number in range(9):
        add(
            log,
            [(b"key%d" % (number % 4), b"new%d" % number)],
            producer_id=3,
            producer_epoch=0,
            base_sequence=number,
        )
    add(log, [(b"key9", b"y" * 300)])
    log.flush()
    # Room for several of the present segments in each new one.
    log.update_config(replace(log.config, segment_bytes=600))
    filesystem.fsync_directory(log.folder)
    filesystem.fsync_directory("/kafka")
    filesystem.fsync_directory("/")
    return filesystem, log, 10_000 + 2 * DAY_MS


def changes_of_a_cleaning() -> int:
    """How many changes to the disk a whole cleaning makes."""
    filesystem, log, now_ms = dirty()
    count = 0

    def note(operation: str, _path: str) -> None:
        nonlocal count
        count += operation in CHANGES

    filesystem.fault = note
    clean(log, now_ms=now_ms)
    return count


TOTAL = changes_of_a_cleaning()


def stop_after(filesystem: MemoryFileSystem, log: Log, now_ms: int, step: int) -> None:
    """Clean, and end the process before the change number `step`."""
    count = 0

    def stop(operation: str, path: str) -> OSError | None:
        nonlocal count
        count += operation in CHANGES
        return Stopped(errno.EIO, os.strerror(errno.EIO), path) if count > step else None

    filesystem.fault = stop
    with pytest.raises(Exception, match="Input/output error"):
        clean(log, now_ms=now_ms)


def check(
    filesystem: MemoryFileSystem, log: Log, before: list[tuple[int, bytes | None, bytes | None]]
) -> None:
    """What a start shows is between all there was and what the cleaning leaves of it."""
    again = compacted_log(
        filesystem, segment_bytes=250, recovery_point=log.flush_state.recovery_point
    )
    shown = found(again)
    assert set(shown) <= set(before)
    offsets = [offset for offset, _, _ in shown]
    assert offsets == sorted(set(offsets))
    assert again.log_end_offset == log.log_end_offset
    assert Accounting(again, 0, again.log_end_offset).run().unexplained == 0
    latest = {key: (offset, value) for offset, key, value in before}
    for key, (offset, value) in latest.items():
        if value is not None:
            assert (offset, key, value) in shown
    values = [(offset, value) for offset, key, value in shown if key == b"gone"]
    assert not values or values[-1][1] is None, "a deleted key has come back"
    names = filesystem.listdir(log.folder)
    assert not [name for name in names if name.endswith((CLEANED_SUFFIX, SWAP_SUFFIX))]
    (entry,) = again.producers.described()
    assert entry.last_sequence == 8
    # And it goes on.
    again.flush()
    end = again.log_end_offset
    assert add(again, [(b"key0", b"later")]) == end
    clean(again, now_ms=20_000 + 4 * DAY_MS)
    assert {key: value for _, key, value in found(again)}[b"key0"] == b"later"
    assert Accounting(again, 0, again.log_end_offset).run().unexplained == 0


@pytest.mark.parametrize("step", range(TOTAL))
def test_a_killed_process_leaves_all_that_counts(step: int) -> None:
    """kill -9 after each change to a file or name."""
    filesystem, log, now_ms = dirty()
    before = found(log)
    stop_after(filesystem, log, now_ms, step)
    filesystem.crash()
    check(filesystem, log, before)


@pytest.mark.parametrize("step", range(TOTAL))
def test_a_power_cut_leaves_all_that_counts(step: int) -> None:
    """The same without what was not flushed, in several ways."""
    for seed in range(6):
        filesystem, log, now_ms = dirty()
        before = found(log)
        stop_after(filesystem, log, now_ms, step)
        filesystem.crash(Random(seed))
        check(filesystem, log, before)


@pytest.mark.parametrize("step", range(0, TOTAL, 3))
def test_a_start_that_is_killed_is_good_for_another(step: int) -> None:
    """Completing a replacement may be broken off anywhere, too."""
    for second in range(0, 30, 2):
        filesystem, log, now_ms = dirty()
        before = found(log)
        stop_after(filesystem, log, now_ms, step)
        filesystem.crash()
        count = 0

        def stop(operation: str, path: str, limit: int = second) -> OSError | None:
            nonlocal count
            count += operation in CHANGES
            return Stopped(errno.EIO, os.strerror(errno.EIO), path) if count > limit else None

        filesystem.fault = stop
        with contextlib.suppress(OSError, StorageError):
            compacted_log(
                filesystem, segment_bytes=250, recovery_point=log.flush_state.recovery_point
            )
        filesystem.crash()
        check(filesystem, log, before)
