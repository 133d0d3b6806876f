"""Rebuilds a damaged log that has no other copy from its readable batches.

Only coordinators' topics are salvaged: coordinators continue with what is left. Each damaged
segment is copied to `….log.damaged`, which is kept, and replaced by its good batches. No offset is
used twice: a batch without records takes the offsets of a lost end.
"""

from dataclasses import dataclass, field
from typing import Protocol

from ottla.record.builder import BatchBuilder
from ottla.record.header import read_header, set_base_offset
from ottla.storage.cleaner.smaller_batch import header_alone
from ottla.storage.disk.errors import LogCorrupt, storage_error
from ottla.storage.disk.filesystem import TEMPORARY_SUFFIX, File, FileSystem
from ottla.storage.files.names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    parse_segment_file,
    segment_file,
)
from ottla.storage.log.log import Log
from ottla.storage.recovery.readable import Damage, ReadableSegment, Whole
from ottla.storage.segment.segment import RELATIVE_OFFSET_MAX

DAMAGED_SUFFIX = ".damaged"
# This file in a partition's folder says that damage was found while the log was in use.
SALVAGE_MARKER = "ottla-salvage"
_WINDOW_BYTES = 1 << 20


@dataclass(slots=True)
class Salvage:
    """The result of a salvage: the log's end, and sentences for the broker's log."""

    end_offset: int
    notes: list[str] = field(default_factory=list)


def salvage(filesystem: FileSystem, folder: str, recovery_point: int, *, clean: bool) -> Salvage:
    """Keep only the good batches of the log at `folder`, which must not be open. Raises OSError.

    On return all of the log is on the disk. It ends at `recovery_point` or later; with `clean`,
    exactly there.
    """
    found = [parse_segment_file(name) for name in filesystem.listdir(folder)]
    bases = sorted(base for base, suffix in filter(None, found) if suffix == LOG_SUFFIX)
    result = Salvage(bases[0] if bases else 0)
    for number, base in enumerate(bases):
        is_last = number + 1 == len(bases)
        limit = base + RELATIVE_OFFSET_MAX if is_last else bases[number + 1]
        if is_last and clean:
            limit = max(base, recovery_point)
        _salvage_segment(filesystem, folder, base, limit, recovery_point if is_last else 0, result)
    filesystem.unlink(f"{folder}/{SALVAGE_MARKER}")
    filesystem.fsync_directory(folder)
    return result


def _salvage_segment(
    filesystem: FileSystem,
    folder: str,
    base_offset: int,
    limit: int,
    end_min: int,
    result: Salvage,
) -> None:
    path = f"{folder}/{segment_file(base_offset, LOG_SUFFIX)}"
    temporary = path + TEMPORARY_SUFFIX
    filesystem.unlink(temporary)
    source = filesystem.open(path)
    target = filesystem.open(temporary, create=True)
    try:
        notes = _copy_good(source, target, base_offset, limit, end_min, result)
        target.fsync()
        if notes:
            _keep(filesystem, source, path + DAMAGED_SUFFIX)
    finally:
        source.close()
        target.close()
    if not notes:
        filesystem.unlink(temporary)
        return
    filesystem.fsync_directory(folder)
    filesystem.rename(temporary, path)
    for suffix in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
        filesystem.unlink(f"{folder}/{segment_file(base_offset, suffix)}")
    result.notes += notes
    result.notes.append(f"{path}: as it was, it is kept in {path + DAMAGED_SUFFIX}")


def _copy_good(
    source: File, target: File, base_offset: int, limit: int, end_min: int, result: Salvage
) -> list[str]:
    """Append the good batches of `source` to `target`; return notes on the faults."""
    reading = ReadableSegment(source, source.size(), base_offset, limit)
    notes = []
    next_offset = base_offset
    while not reading.is_done:
        for each in reading.read(_WINDOW_BYTES):
            if isinstance(each, Damage):
                notes.append(
                    f"{each.path}: {each.size} bytes from {each.position} on, offset "
                    f"{each.offset}, cannot be read and are left out: {each.what}"
                )
                continue
            batch = _in_order(each, next_offset)
            header = read_header(batch)
            if header.last_offset >= limit:
                notes.append(f"{source.path}: there is no place for the batch at {next_offset}")
                continue
            if each.is_repaired:
                notes.append(f"{source.path}: the header at offset {header.base_offset} was mended")
            target.append(batch)
            next_offset = header.last_offset + 1
    if next_offset < end_min <= limit:
        target.append(_nothing(next_offset, end_min))
        notes.append(f"{source.path}: offsets {next_offset} to {end_min - 1} are lost")
        next_offset = end_min
    result.end_offset = next_offset
    return notes


def _in_order(found: Whole, next_offset: int) -> bytearray:
    batch = bytearray(found.buffer[found.place : found.place + found.header.size])
    if found.header.base_offset < next_offset:
        set_base_offset(batch, 0, next_offset)
    return batch


def _nothing(begin: int, end: int) -> bytearray:
    """Build a batch without records that takes the offsets in [begin, end)."""
    builder = BatchBuilder(base_offset=begin)
    builder.append(0, None, None)
    header = read_header(builder.build())
    return header_alone(header._replace(last_offset_delta=end - begin - 1))


def _keep(filesystem: FileSystem, source: File, path: str) -> None:
    """Copy a file, unless an earlier copy is kept already."""
    if filesystem.exists(path):
        return
    temporary = path + TEMPORARY_SUFFIX
    filesystem.unlink(temporary)
    kept = filesystem.open(temporary, create=True)
    try:
        for position in range(0, source.size(), _WINDOW_BYTES):
            kept.append(source.pread(_WINDOW_BYTES, position))
        kept.fsync()
    finally:
        kept.close()
    filesystem.rename(temporary, path)


def mark(filesystem: FileSystem, folder: str) -> None:
    """Have the log at `folder`, which is in use, salvaged when it is opened next. OSError."""
    filesystem.open(f"{folder}/{SALVAGE_MARKER}", create=True).close()


class OpenLog(Protocol):
    """Opens one log; the other arguments are bound. Raises LogCorrupt, StorageError."""

    def __call__(self, *, recovery_point: int, clean: bool) -> Log: ...


def open_salvaged(
    filesystem: FileSystem, folder: str, open_log: OpenLog, recovery_point: int, *, clean: bool
) -> Log:
    """Open a log without its unreadable parts, which its notes list. Raises StorageError."""
    notes: list[str] = []
    try:
        if not filesystem.exists(f"{folder}/{SALVAGE_MARKER}"):
            return open_log(recovery_point=recovery_point, clean=clean)
    except LogCorrupt as damage:
        notes.append(damage.message or folder)
    try:
        done = salvage(filesystem, folder, recovery_point, clean=clean)
    except OSError as error:
        raise storage_error(error, folder, "salvage the log") from error
    log = open_log(recovery_point=done.end_offset, clean=False)
    log.recovery.salvaged += notes + done.notes
    return log
