"""Reads files that settings name, whatever their names lead to."""

import errno
import os
import stat
from typing import Final

from ottla.base import system

# A FIFO without a writer opens at once, and no terminal becomes the broker's own.
_AT_ONCE: Final[int] = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


def read_small(path: str, size_max: int) -> bytes:
    """The content of a regular file of at most `size_max` bytes.

    Anything else is refused unread: a FIFO or a device may have no end. Raises OSError, whose
    `strerror` has the reason.
    """
    descriptor = os.open(path, os.O_RDONLY | _AT_ONCE | system.OPEN_FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", path)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(size_max + 1)
    finally:
        os.close(descriptor)
    if len(content) > size_max:
        raise OSError(errno.EFBIG, f"it has more than {size_max} bytes", path)
    return content
