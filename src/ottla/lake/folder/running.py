"""Which loads run: a marker file for each, locked for as long as its process lives.

    DIR/_ottla/running/<load id>

The system gives up the lock when the process ends, however it ends. Another machine may not see
the lock, where the file system does not share locks: there a marker counts until it is a day old.
"""

import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ottla.base.file_lock import is_free, try_lock

_MARGIN_S = 24 * 3600
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class RunningLoads:
    """The markers in `folder`, which need not exist."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def mark(self, load_id: str) -> Iterator[None]:
        """Show that the load runs, until the context is left or the process ends."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / load_id
        draft = self._folder / f".{load_id}.tmp"
        try:
            with draft.open("wb", buffering=0) as file:
                file.write(_machine())
                with suppress(OSError):  # No locks on this file system: the age decides.
                    try_lock(file.fileno())
                # Under its own name a marker is locked from the start.
                os.replace(draft, path)
                yield
        finally:
            path.unlink(missing_ok=True)
            draft.unlink(missing_ok=True)

    def may_run(self, load_id: str) -> bool:
        """False only where the load has ended, or its process has."""
        path = self._folder / load_id
        try:
            with path.open("rb") as file:
                machine = file.read()
                is_locked = not is_free(file.fileno())
                age_s = time.time() - os.fstat(file.fileno()).st_mtime
        except FileNotFoundError:
            return False
        except OSError:  # No locks, or no right to look: nothing says that it has ended.
            return _age_s(path) < _MARGIN_S
        return is_locked or (machine != _machine() and age_s < _MARGIN_S)

    def sweep(self) -> None:
        """Remove the markers of loads whose process has ended."""
        with suppress(FileNotFoundError):
            for name in os.listdir(self._folder):
                if not name.startswith(".") and not self.may_run(name):
                    (self._folder / name).unlink(missing_ok=True)


def _age_s(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0


def _machine() -> bytes:
    """What processes that see each other's locks have in common: one running kernel."""
    with suppress(OSError):
        return _BOOT_ID.read_bytes().strip()
    return platform.node().encode()
