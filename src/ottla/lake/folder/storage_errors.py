"""What the disk or the file system of a table refuses, as one sentence with cause and remedy."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from ottla.base.errors import ErrorCode, OttlaError

_OTHER_FOLDER = "or choose another folder"


@contextmanager
def as_storage_error(folder: str) -> Iterator[None]:
    """Turn an OSError about `folder`, or a file in it, into an OttlaError.

    Errors of connections pass: they are not the file system's.
    """
    try:
        yield
    except (ConnectionError, TimeoutError):
        raise
    except OSError as error:
        raise OttlaError(ErrorCode.KAFKA_STORAGE_ERROR, _sentence(error, folder)) from error


def _sentence(error: OSError, folder: str) -> str:
    place = error.filename or folder
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
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
            cause = error.strerror or str(error)
            return f"{place} cannot be written or read ({cause}); repair its disk, {_OTHER_FOLDER}"
