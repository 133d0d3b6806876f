"""The last free bytes of a disk, which records of clients may not use.

Without them a full disk would be a dead end: the store, checkpoints, a new segment after retention
and a recovery all need a little room, and only they can make more. So appends are refused earlier,
those of clients first: see `DiskUse` and docs/developers/adr/0031-reserve-of-a-disk.md.
"""

import contextlib
import errno
import hashlib
import os
from enum import IntEnum

from ottla.storage.disk.filesystem import FileSystem

_RESERVE_BYTES_MAX = 256 << 20
# On a disk smaller than 2 GiB, one part in this many is reserved.
_SHARE = 8


def reserve_bytes(total_bytes: int) -> int:
    """Return the reserve of a disk with `total_bytes`."""
    return min(_RESERVE_BYTES_MAX, total_bytes // _SHARE)


# How long a measurement holds. Other programs, and other brokers, write to the disk meanwhile.
_MEASURED_FOR_MS = 100
_UNKNOWN = 1 << 62


class DiskUse(IntEnum):
    """The kind of a write.

    The value is how many quarters of the reserve must stay free after it.
    """

    # Records of clients, on their partition's leader.
    RECORDS = 4
    # The same on a follower: what its leader has accepted should fit on a disk that they share.
    COPIED_RECORDS = 3
    # The broker's own writes: internal topics, transaction markers, compaction, audit lines.
    OWN = 2
    # The same on a follower. What is left is for the store, checkpoints and recovery.
    COPIED_OWN = 1


class Reserve:
    """The reserve of the disk that holds `path`; 0 if the disk cannot be measured."""

    def __init__(self, filesystem: FileSystem, path: str) -> None:
        self._filesystem = filesystem
        self._path = path
        # How many bytes may be written before the disk is measured again, and until when.
        self._credit_bytes = -1
        self._measured_ms = self._until_ms = 0

    # Hot: once per append.
    def allows(self, size: int, now_ms: int, use: DiskUse) -> bool:
        """Return whether `size` bytes may be written now; they are counted as written."""
        self._credit_bytes -= size
        if self._credit_bytes >= 0 and self._measured_ms <= now_ms < self._until_ms:
            return True
        free, reserve = self._measure()
        # Other log directories on the same disk have as much credit, so each takes only a part of
        # the free bytes.
        self._credit_bytes = (free - reserve) // 4 - size
        self._measured_ms, self._until_ms = now_ms, now_ms + _MEASURED_FOR_MS
        return free - size >= reserve * use // DiskUse.RECORDS

    def require(self, size: int, use: DiskUse) -> None:
        """Raise OSError (ENOSPC) if `size` bytes may not be written now."""
        free, reserve = self._measure()
        if free - size < reserve * use // DiskUse.RECORDS:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)

    def is_short(self) -> bool:
        """Return whether appends are refused, or will be soon; then deletions should not wait."""
        free, reserve = self._measure()
        return free < 2 * reserve

    def space(self) -> tuple[int, int, int]:
        """Return the disk's total bytes, its free bytes and the reserve; 0 if it is unknown."""
        try:
            total = self._filesystem.total_bytes(self._path)
            free = self._filesystem.free_bytes(self._path) if total else 0
        except OSError:
            return 0, 0, 0
        return total, free, reserve_bytes(total)

    def _measure(self) -> tuple[int, int]:
        """Return the free bytes and the reserve; plenty and 0 if the disk cannot be measured."""
        filesystem, path = self._filesystem, self._path
        try:
            total = filesystem.total_bytes(path)
            return (filesystem.free_bytes(path), reserve_bytes(total)) if total else (_UNKNOWN, 0)
        except OSError:
            return _UNKNOWN, 0


BALLAST = "ottla-ballast"
BALLAST_BYTES = 1 << 20


class Ballast:
    """A file in the log directory at `path`, removed to make room when the disk is full."""

    def __init__(self, filesystem: FileSystem, path: str) -> None:
        self._filesystem = filesystem
        self._path = f"{path}/{BALLAST}"
        # None before the first check.
        self._is_there: bool | None = None

    @property
    def is_made(self) -> bool:
        """Whether the file is known to exist."""
        return self._is_there is True

    def make(self) -> None:
        """Create the file if it is missing. Without room for all of it, no file is left."""
        if self._is_there:
            return
        filesystem, path = self._filesystem, self._path
        try:
            if not filesystem.exists(path) or filesystem.size(path) != BALLAST_BYTES:
                filesystem.unlink(path)
                _write_ballast(filesystem, path)
            self._is_there = True
        except OSError:
            with contextlib.suppress(OSError):
                filesystem.unlink(path)

    def give_up(self) -> bool:
        """Remove the file to make room. Return False if it did not exist or cannot be removed."""
        self._is_there = False
        try:
            was_there = self._filesystem.exists(self._path)
            self._filesystem.unlink(self._path)
        except OSError:
            return False
        return was_there


def _write_ballast(filesystem: FileSystem, path: str) -> None:
    file = filesystem.open(path, create=True)
    try:
        # Random bytes, which a compressing file system cannot shrink.
        file.append(hashlib.shake_256(BALLAST.encode()).digest(BALLAST_BYTES))
        file.fsync()
    finally:
        file.close()
