"""A small file in a log directory that holds room on the disk for what makes room.

It is given up where another program has filled the disk to its last byte, the reserve as well, and
retention cannot write the ledger without which it deletes nothing.
"""

import contextlib
import hashlib

from ottla.storage.disk.filesystem import FileSystem

BALLAST = "ottla-ballast"
BALLAST_BYTES = 1 << 20


class Ballast:
    """The file in the log directory at `path`."""

    def __init__(self, filesystem: FileSystem, path: str) -> None:
        self._filesystem = filesystem
        self._path = f"{path}/{BALLAST}"
        # Not known before the first look.
        self._is_there: bool | None = None

    @property
    def is_made(self) -> bool:
        """Whether the file is known to be there."""
        return self._is_there is True

    def make(self) -> None:
        """Make the file where it is missing. Without room for all of it there is none."""
        if self._is_there:
            return
        filesystem, path = self._filesystem, self._path
        try:
            if not filesystem.exists(path) or filesystem.size(path) != BALLAST_BYTES:
                filesystem.unlink(path)
                _write(filesystem, path)
            self._is_there = True
        except OSError:
            with contextlib.suppress(OSError):
                filesystem.unlink(path)

    def give_up(self) -> bool:
        """Remove the file. Whether there was one, so that there is room now."""
        self._is_there = False
        try:
            was_there = self._filesystem.exists(self._path)
            self._filesystem.unlink(self._path)
        except OSError:
            return False
        return was_there


def _write(filesystem: FileSystem, path: str) -> None:
    file = filesystem.open(path, create=True)
    try:
        # Random bytes, which a compressing file system cannot shrink.
        file.append(hashlib.shake_256(BALLAST.encode()).digest(BALLAST_BYTES))
        file.fsync()
    finally:
        file.close()
