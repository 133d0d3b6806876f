"""The mount of a path: a number that no later mount gets again.

Linux has it from 6.8 on, through a system call that Python has no function for yet. A disk that was
taken away and mounted anew may have lost what was not flushed, though the machine never stopped.
"""

import ctypes
import os
from struct import Struct

_AT_FDCWD = -100
_MASK_UNIQUE = 0x4000
_STATX_BYTES = 256
_MASK = Struct("=I")
_MOUNT_ID = Struct("=Q")
_MOUNT_ID_POSITION = 144


def mount_id(path: str) -> int:
    """The unique id of the mount that holds `path`; its device where the kernel is too old.

    Raises OSError.
    """
    try:
        statx = ctypes.CDLL(None, use_errno=True).statx
    except (OSError, AttributeError, TypeError):
        return os.stat(path).st_dev
    buffer = ctypes.create_string_buffer(_STATX_BYTES)
    if statx(_AT_FDCWD, os.fsencode(path), 0, _MASK_UNIQUE, buffer) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    (answered,) = _MASK.unpack_from(buffer)
    if not answered & _MASK_UNIQUE:
        return os.stat(path).st_dev
    (found,) = _MOUNT_ID.unpack_from(buffer, _MOUNT_ID_POSITION)
    return int(found)
