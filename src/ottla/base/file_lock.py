"""Locks on open files, which the system releases when the process that holds them ends.

They are flock's if the system has it, else Windows' locks on bytes. Without either nothing is
locked. A broker in memory needs no lock, but two other brokers could then use one folder
(`EXISTS`).
"""

import contextlib
import os
import time
from collections.abc import Iterator
from typing import Final

try:
    import fcntl
except ImportError:
    _HAS_FLOCK = False
    try:
        import msvcrt
    except ImportError:
        _HAS_BYTE_LOCKS = False
    else:
        _HAS_BYTE_LOCKS = True
else:
    _HAS_FLOCK, _HAS_BYTE_LOCKS = True, False

EXISTS: Final = _HAS_FLOCK or _HAS_BYTE_LOCKS

# The byte locked on Windows, after any content, because other processes cannot read it.
_BYTE_POSITION = 1 << 30
# How often a lock is polled on systems that wake no waiter.
_LOOK_S = 0.05


def try_lock(descriptor: int) -> bool:
    """Take the lock until the descriptor is closed. False if another process has it."""
    if _HAS_FLOCK:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    elif _HAS_BYTE_LOCKS:
        try:
            with _at_byte(descriptor):
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
    return True


def is_free(descriptor: int) -> bool:
    """Whether no other process has the lock; False on systems without locks."""
    if _HAS_FLOCK:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
    if not _HAS_BYTE_LOCKS or not try_lock(descriptor):
        return False
    with _at_byte(descriptor):
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined]
    return True


def wait_until_free(descriptor: int) -> None:
    """Block until the process that has the lock ends or releases it."""
    if _HAS_FLOCK:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        return
    while not is_free(descriptor):
        time.sleep(_LOOK_S)


@contextlib.contextmanager
def _at_byte(descriptor: int) -> Iterator[None]:
    """Seek to the byte to lock, as Windows locks at the descriptor's position."""
    before = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.lseek(descriptor, _BYTE_POSITION, os.SEEK_SET)
    try:
        yield
    finally:
        os.lseek(descriptor, before, os.SEEK_SET)
