"""The errors of a disk: all are KAFKA_STORAGE_ERROR to a client."""

import errno

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.private_files import whose

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_GONE = frozenset({errno.ENOENT, errno.EBADF})
_REMEDY = (
    "Free space on that disk, shorten retention or delete a topic; writing goes on by itself when "
    "there is room."
)


class StorageError(OttlaError):
    """An operation on the disk failed; the message says which and where."""

    # Whether the log that it concerns must go offline.
    stops_log = False

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)


class DiskFull(StorageError):
    """A write failed for lack of space and left nothing. Reads go on; later writes may succeed."""


class DirectoryFailed(StorageError):
    """A disk error that makes the whole log directory untrustworthy until a restart."""

    stops_log = True


class LogGone(StorageError):
    """The log's files were closed, renamed or removed: it was deleted meanwhile, or by hand."""

    stops_log = True


class LogCorrupt(StorageError):
    """A log with damage below its recovery point. It stays offline; other logs go on."""

    stops_log = True

    def __init__(self, path: str, position: int, offset: int, what: str, remedy: str) -> None:
        super().__init__(f"{path}: at byte {position}, offset {offset}: {what}. {remedy}")
        self.path = path
        self.position = position
        self.offset = offset


def reserve_reached(path: str, size: int) -> DiskFull:
    """Return the error for an append that would use the disk's reserve: see `reserve`."""
    return DiskFull(
        f"{path}: no space left to append {size} bytes: what is left of the disk is reserved for "
        f"deletions and restarts. {_REMEDY}"
    )


def full_at_start(path: str) -> DiskFull:
    """Return the error for a disk without room for the marks that a broker writes at its start."""
    return DiskFull(
        f"{path}: the disk is full, and a broker writes a few marks when it starts; free space on"
        " that disk, perhaps what another program wrote, and start the broker again"
    )


def is_full(error: OSError) -> bool:
    """Return whether a write failed for lack of space."""
    return error.errno in _FULL


def storage_error(error: OSError, path: str, what: str) -> StorageError:
    """Return the error that names the failed step and the remedy.

    A full disk can recover; a failing disk cannot.
    """
    if is_full(error):
        return DiskFull(f"{path}: no space left to {what}. {_REMEDY}")
    if error.errno in _GONE:
        return LogGone(f"{path}: could not {what}: the log's files are gone")
    if isinstance(error, PermissionError):
        return DirectoryFailed(
            f"{path}: could not {what}: {error.strerror or error}{whose(path)}. Its log directory "
            "is offline; `chown -R` it to the user that runs the broker, then restart the broker."
        )
    return DirectoryFailed(
        f"{path}: could not {what}: {error.strerror or error}. "
        "Its log directory is offline; check the disk, then restart the broker."
    )


def fsync_error(error: OSError, path: str) -> DirectoryFailed:
    """Return the error for a failed fsync, whatever its reason.

    The kernel may have dropped what it could not write. A retry would succeed and save nothing, so
    a full disk is no exception here.
    """
    return DirectoryFailed(
        f"{path}: could not flush: {error.strerror or error}. What was written since the last "
        "flush may be lost. Its log directory is offline; check the disk, then restart the broker."
    )
