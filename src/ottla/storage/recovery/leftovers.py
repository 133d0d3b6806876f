"""The leftovers of an earlier process: interrupted cleanings, and the note of a failed flush.

A start removes unfinished cleaned segments, and completes an announced replacement. A cleaned
segment is announced by the name `.log.swap`; before that the old segments are valid, from then on
the cleaned one is.
"""

import contextlib

from ottla.ledger.files import decode_removals
from ottla.storage.disk.filesystem import FileSystem
from ottla.storage.files.names import (
    CLEANED_FILES,
    CLEANED_SUFFIX,
    LEDGER_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    parse_segment_file,
    segment_file,
)
from ottla.storage.segment.batch_walk import walk


def complete_swaps(filesystem: FileSystem, folder: str) -> list[str]:
    """Complete announced replacements in a log's folder, and remove what is left of others.

    It may be interrupted at any point, and repeated. Returns the names in the folder, sorted.
    Raises OSError.
    """
    names = filesystem.listdir(folder)
    if not any(name.endswith((CLEANED_SUFFIX, SWAP_SUFFIX)) for name in names):
        return names
    for name in names:
        if name.endswith(CLEANED_SUFFIX):
            filesystem.unlink(f"{folder}/{name}")
    for name in names:
        parsed = parse_segment_file(name)
        if parsed is not None and parsed[1] == LOG_SUFFIX + SWAP_SUFFIX:
            _complete(filesystem, folder, parsed[0], names)
    for name in filesystem.listdir(folder):
        if name.endswith(SWAP_SUFFIX):
            filesystem.unlink(f"{folder}/{name}")
    filesystem.fsync_directory(folder)
    return filesystem.listdir(folder)


def _complete(filesystem: FileSystem, folder: str, base_offset: int, names: list[str]) -> None:
    end = _end_offset(filesystem, folder, base_offset)
    for name in names:
        parsed = parse_segment_file(name)
        if parsed is None or parsed[1] not in SEGMENT_SUFFIXES:
            continue
        if base_offset < parsed[0] < end:
            filesystem.unlink(f"{folder}/{name}")
    # The old segments must not come back once the new one has its name.
    filesystem.fsync_directory(folder)
    give_names(filesystem, folder, base_offset)


def _end_offset(filesystem: FileSystem, folder: str, base_offset: int) -> int:
    """Return the end of the cleaned range; none of its old segments may come back."""
    ledger = f"{folder}/{segment_file(base_offset, LEDGER_SUFFIX)}"
    if filesystem.exists(ledger + SWAP_SUFFIX):
        ledger += SWAP_SUFFIX
    with contextlib.suppress(FileNotFoundError, ValueError, KeyError, TypeError):
        reach = decode_removals(filesystem.read_bytes(ledger)).reach
        if reach:
            return reach
    # Made by a cleaner that wrote no ledger.
    path = f"{folder}/{segment_file(base_offset, LOG_SUFFIX)}{SWAP_SUFFIX}"
    file = filesystem.open(path)
    try:
        end = base_offset
        for _, header in walk(file, 0, file.size(), base_offset):
            end = header.last_offset + 1
        return end
    finally:
        file.close()


def give_names(filesystem: FileSystem, folder: str, base_offset: int) -> None:
    """Rename a segment's files to their final names, the log last. Raises OSError.

    A missing side file was already renamed by an interrupted attempt.
    """
    for suffix in CLEANED_FILES:
        path = f"{folder}/{segment_file(base_offset, suffix)}"
        if filesystem.exists(path + SWAP_SUFFIX):
            filesystem.rename(path + SWAP_SUFFIX, path)


# The kernel reports a failed write once and marks the pages as clean: they read as if they were on
# the disk, and a later fsync succeeds and saves nothing. A process that finds this note writes the
# unflushed end of the log again, in place, before it counts any of it as flushed. The note itself
# is never flushed: it is in the page cache like the data that it warns of, and is lost with it.
FAILED_FLUSH = "ottla-failed-flush"


def note_failed_flush(filesystem: FileSystem, folder: str) -> None:
    """Leave the note in the log's folder. An error is ignored: then nothing can be written."""
    with contextlib.suppress(OSError):
        filesystem.open(f"{folder}/{FAILED_FLUSH}", create=True).close()


def forget_failed_flush(filesystem: FileSystem, folder: str) -> None:
    """Remove the note, because the end of the log was written again. Raises OSError."""
    filesystem.unlink(f"{folder}/{FAILED_FLUSH}")
