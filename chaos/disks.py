"""A disk whose power can be cut: a file system in a file, shut down without writing back.

The shutdown is ext4's own (`EXT4_IOC_SHUTDOWN`, without flushing the log): from then on each
access is an error, and after the next mount what was never synced is gone, names included.
"""

import contextlib
import fcntl
import os
import struct
from pathlib import Path

from chaos.commands import CommandFailed, run

TOOLS = ("mkfs.ext4", "mount", "umount", "truncate")

_SHUTDOWN = 0x8004587D
_WITHOUT_FLUSHING = 2


class Disk:
    """One ext4 file system in a sparse file. Its users must be dead before it is mounted again."""

    def __init__(self, folder: Path, name: str, size: str = "1G") -> None:
        self.mount_point = folder / name
        self._file = folder / f"{name}.ext4"
        self._mounted = False
        self.mount_point.mkdir(parents=True, exist_ok=True)
        run("truncate", "-s", size, str(self._file))
        # A short commit interval would sync behind the test's back.
        run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,nodiscard", str(self._file))
        self.mount()

    def mount(self) -> None:
        """Make the files visible; the journal is replayed."""
        run("mount", "-o", "loop,commit=300", str(self._file), str(self.mount_point))
        self._mounted = True

    def cut_power(self) -> None:
        """Lose everything that was not synced. Every file on it fails from now on."""
        descriptor = os.open(self.mount_point, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, _SHUTDOWN, struct.pack("I", _WITHOUT_FLUSHING))
        finally:
            os.close(descriptor)

    def unmount(self) -> None:
        """Give the file system back. Raises CommandFailed while a process still uses it."""
        if self._mounted:
            run("umount", str(self.mount_point))
            self._mounted = False

    def fill(self) -> None:
        """Take all space there is, the reserve of root too."""
        with open(self._ballast, "wb") as file:
            for size in (1 << 26, 1 << 20, 1 << 12):
                end = os.fstat(file.fileno()).st_size
                with contextlib.suppress(OSError):
                    while True:
                        os.posix_fallocate(file.fileno(), end, size)
                        end += size

    def empty(self) -> None:
        """Give the space back."""
        self._ballast.unlink(missing_ok=True)

    @property
    def _ballast(self) -> Path:
        return self.mount_point / "ballast"

    def close(self) -> None:
        """Unmount, by force if must be, and remove the file."""
        if self._mounted:
            try:
                self.unmount()
            except CommandFailed:
                run("umount", "-l", str(self.mount_point))
                self._mounted = False
        self._file.unlink(missing_ok=True)
