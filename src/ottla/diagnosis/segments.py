"""Reads the batches in a partition's `.log` files without a broker, even if files are damaged.

Files are only read: nothing is truncated, repaired or locked, so a broker may run meanwhile.
"""

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ottla.base.errors import ErrorCode, OttlaError
from ottla.record.header import BatchHeader
from ottla.record.reader import CorruptBatch, batches, check_batch
from ottla.storage.directory.meta_properties import META_PROPERTIES
from ottla.storage.files.names import parse_partition_folder, parse_segment_file
from ottla.storage.recovery.damage import valid_batch_behind


@dataclass(frozen=True, slots=True)
class SegmentBatch:
    """A batch at `position` of `buffer`, which has the content of `file`.

    `fault` is None if the checksum is valid.
    """

    file: Path
    buffer: memoryview
    position: int
    header: BatchHeader
    fault: str | None


@dataclass(frozen=True, slots=True)
class NoBatch:
    """Bytes from `position` on that are not a valid batch, and the reason.

    `is_end` means that no valid batch follows, as after a crash. The broker truncates such bytes
    when it starts.
    """

    file: Path
    position: int
    size: int
    why: str
    is_end: bool


def segments(path: Path) -> list[Path]:
    """Return the segment file `path`, or all segments of the partition folder `path`, in order.

    Raises OttlaError(LOG_DIR_NOT_FOUND).
    """
    if path.is_file():
        return [path]
    found = sorted(path.glob("*.log"))
    if not found:
        raise OttlaError(ErrorCode.LOG_DIR_NOT_FOUND, _why_nothing(path))
    return found


def batches_in(file: Path) -> Iterator[SegmentBatch | NoBatch]:
    """Yield each batch of a segment, and the invalid bytes between and after batches."""
    with file.open("rb") as opened:
        if file.stat().st_size == 0:
            return
        mapped = memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
    known = parse_segment_file(file.name)
    base_offset = 0 if known is None else known[0]
    end = 0
    while end < len(mapped):
        begin, why = end, "a batch that ends behind the file"
        try:
            for position, header in batches(mapped[begin:]):
                yield _batch(file, mapped, begin + position, header)
                end = begin + position + header.size
        except CorruptBatch as error:
            why = error.message or why
        if end == len(mapped):
            return
        behind = valid_batch_behind(_Mapped(mapped), end + 1, len(mapped), base_offset)
        if behind < 0:
            break
        yield NoBatch(file, end, behind - end, why, is_end=False)
        end = behind
    yield NoBatch(file, end, len(mapped) - end, why, is_end=True)


def _why_nothing(path: Path) -> str:
    if path.exists():
        return (
            f"{path} holds no .log files; give the folder of a partition, such as "
            "ottla-data/flights-0"
        )
    partition = parse_partition_folder(path.name)
    if partition is None or not (path.parent / META_PROPERTIES).exists():
        return (
            f"there is no file or folder {path}; give the folder of a partition, such as "
            "ottla-data/flights-0"
        )
    return (
        f"{path.parent} has no files of {partition}: this broker has no replica of it, or one that "
        "is empty, for a partition's folder is made by its first record; "
        f"`ottla topic describe {partition.topic}` shows replicas and offsets"
    )


def _batch(file: Path, buffer: memoryview, position: int, header: BatchHeader) -> SegmentBatch:
    try:
        check_batch(buffer, position, header)
    except CorruptBatch as error:
        return SegmentBatch(file, buffer, position, header, error.message or "damaged")
    return SegmentBatch(file, buffer, position, header, None)


class _Mapped:
    """A mapped file with the method `pread`, as `valid_batch_behind` requires."""

    def __init__(self, content: memoryview) -> None:
        self._content = content

    def pread(self, size: int, position: int, /) -> bytes:
        return bytes(self._content[position : position + size])
