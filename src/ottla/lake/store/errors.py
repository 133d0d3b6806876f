"""Converts errors of a table's disk or file system to one sentence with cause and remedy."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from ottla.base.errors import ErrorCode, OttlaError

_OTHER_FOLDER = "or choose another folder"
# Another try only helps after space was freed or the disk was remounted.
_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSALS = (*_FULL, errno.EROFS)
# How libraries in Rust, C (SQLite) and Python quote the system's messages.
_NUMBER = re.compile(r"\(os error (\d+)\)|\[Errno (\d+)\]")
_SQLITE_FULL = "database or disk is full"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def plain(text: str) -> str:
    """Return the text without terminal colours, which libraries put into their errors."""
    return _COLOURS.sub("", text)


def refusal_of_disk(error: BaseException) -> OSError | None:
    """Return the error of a full or read-only disk that `error` is or quotes; else None.

    A library that met such an error has committed nothing, and would meet it again.
    """
    number = error.errno if isinstance(error, OSError) else None
    if number is None:
        text = str(error)
        found = _NUMBER.search(text)
        number = int(found[1] or found[2]) if found else None
        if _SQLITE_FULL in text:
            number = errno.ENOSPC
    if number not in _REFUSALS:
        return None
    if isinstance(error, OSError) and error.errno is not None:
        return error
    return OSError(number, os.strerror(number))


@contextmanager
def as_storage_error(folder: str) -> Iterator[None]:
    """Turn an OSError about `folder`, or a file in it, into an OttlaError.

    Errors of connections are not converted: they are not the file system's.
    """
    try:
        yield
    except (ConnectionError, TimeoutError):
        raise
    except OSError as error:
        told = refusal_of_disk(error) or error
        raise OttlaError(ErrorCode.KAFKA_STORAGE_ERROR, _sentence(told, folder)) from error


def _sentence(error: OSError, folder: str) -> str:
    place = error.filename or folder
    match error.errno:
        case number if number in _FULL:
            return f"no space is left on the disk of {folder}; make room there, {_OTHER_FOLDER}"
        case errno.EROFS:
            return (
                f"{place} cannot be written: its file system is mounted read-only; mount it for "
                f"writing, {_OTHER_FOLDER}"
            )
        case errno.EACCES | errno.EPERM:
            return (
                f"{place} cannot be written or read by this user; give the user that right, "
                f"{_OTHER_FOLDER}"
            )
        case errno.ENOTDIR | errno.EEXIST:
            return f"{folder} cannot be a folder: a file is at {place}; move it, {_OTHER_FOLDER}"
        case errno.ENOENT:
            return (
                f"{place} is not there (any more); the target must be one folder that the driver "
                "and all workers share, and that nothing else removes files from"
            )
        case _:
            cause = " ".join(plain(error.strerror or str(error)).split())
            return f"{place} cannot be written or read ({cause}); repair its disk, {_OTHER_FOLDER}"
