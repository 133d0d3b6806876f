"""Markers that a process holds in a folder: a file, locked for as long as the process lives.

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


@contextmanager
def hold(path: Path) -> Iterator[None]:
    """Keep a marker until the context is left or the process ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.tmp")
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


def is_held(path: Path) -> bool:
    """False only where there is no marker, or where its process has ended."""
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
