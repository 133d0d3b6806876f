"""A kernel lock on a file that lives exactly as long as the process that holds it.

A session in the shared file is proved alive by such a lock: when its process dies, however it
dies, the kernel gives the lock up at once.
"""

import fcntl
import os


class SessionLock:
    """Held from `take` until `release` or the end of the process."""

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self._path = path

    @classmethod
    def take(cls, path: str) -> "SessionLock | None":
        """The lock of the file, made where it lacks; None where somebody else has it."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return cls(descriptor, path)

    def release(self) -> None:
        """Remove the file and give the lock up."""
        os.unlink(self._path)
        os.close(self._descriptor)
