"""Remembering a failed flush of a log, for the process that opens the log next.

The kernel reports a failed write once and marks the pages as clean: they read as if they were on
the disk, and a later fsync succeeds and saves nothing. A process that finds the note writes the
unflushed end of the log again, in place, before it counts any of it as flushed.

The note is never flushed itself. It lies in the same page cache as what it warns of, and may go
with it: after a power cut the log holds what the disk holds, note or no note.
"""

import contextlib

from ottla.storage.disk.filesystem import FileSystem

FAILED_FLUSH = "ottla-failed-flush"


def note_failed_flush(filesystem: FileSystem, folder: str) -> None:
    """Leave the note in the log's folder; where not even that can be written, nothing can."""
    with contextlib.suppress(OSError):
        filesystem.open(f"{folder}/{FAILED_FLUSH}", create=True).close()


def has_failed_flush(filesystem: FileSystem, folder: str) -> bool:
    """Whether a flush of the log has failed since its end was last written again."""
    return filesystem.exists(f"{folder}/{FAILED_FLUSH}")


def forget_failed_flush(filesystem: FileSystem, folder: str) -> None:
    """The end of the log was written again. Raises OSError."""
    filesystem.unlink(f"{folder}/{FAILED_FLUSH}")
