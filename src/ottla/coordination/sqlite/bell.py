"""Notifies other processes that share a file of a change, without polling.

A process that has changed the file touches its times; Linux's inotify wakes the listeners. A ring
may be lost (its process may die before it), so listeners also look at intervals.
"""

import ctypes
import os
import sys

_IN_ATTRIB = 0x4
_EVENTS_BYTES = 65_536


def ring(path: str) -> None:
    """Wake the processes that listen to `path`."""
    os.utime(path)


class Bell:
    """A listener. Its file descriptor becomes readable after a ring."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    @classmethod
    def listen(cls, path: str) -> "Bell | None":
        """Listen to `path`; None if the system has no inotify, or no free instances."""
        if sys.platform != "linux":
            return None
        libc = ctypes.CDLL(None, use_errno=True)
        # The flags of inotify_init1 are those of open.
        descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if descriptor < 0:
            return None
        if libc.inotify_add_watch(descriptor, os.fsencode(path), _IN_ATTRIB) < 0:
            os.close(descriptor)
            return None
        return cls(descriptor)

    def clear(self) -> None:
        """Clear the pending rings."""
        try:
            os.read(self.descriptor, _EVENTS_BYTES)
        except BlockingIOError:
            return

    def close(self) -> None:
        os.close(self.descriptor)
