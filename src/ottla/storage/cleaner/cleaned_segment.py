"""Writes a cleaned segment and its three indexes, under names that end in `.cleaned`."""

from collections.abc import Callable, Iterator

from ottla.ledger.files import encode_removals
from ottla.ledger.removals import SegmentRemovals
from ottla.record.header import HEADER_SIZE, BatchHeader, computed_crc, read_header
from ottla.storage.disk.errors import LogCorrupt
from ottla.storage.disk.filesystem import Buffer, FileSystem
from ottla.storage.disk.reserve import DiskUse, Reserve
from ottla.storage.files.names import (
    CLEANED_SUFFIX,
    LEDGER_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    segment_file,
)
from ottla.storage.index.offset_index import OffsetIndex
from ottla.storage.index.time_index import TimeIndex
from ottla.storage.index.transaction_index import AbortedTransaction, TransactionIndex
from ottla.storage.segment.batch_walk import header_fault

_WINDOW_BYTES = 1 << 20
_REMEDY = (
    "The log is not compacted; where another replica is in sync, this one is made anew from the "
    "leader, else restore the file from a copy."
)

# Called with the number of bytes read or written. It waits to keep to a rate, or raises to cancel.
Pace = Callable[[int], None]


def read_batches(
    filesystem: FileSystem, path: str, base_offset: int, size: int, pace: Pace
) -> Iterator[tuple[BatchHeader, bytes]]:
    """Yield (header, whole batch) of the first `size` bytes, checksums verified.

    Raises LogCorrupt, OSError.
    """
    file = filesystem.open(path)
    try:
        position, next_offset = 0, base_offset
        window_bytes = _WINDOW_BYTES
        while position < size:
            window = file.pread(min(window_bytes, size - position), position)
            pace(len(window))
            place = 0
            while place + HEADER_SIZE <= len(window):
                header = read_header(window, place)
                fault = header_fault(header, size - position - place, next_offset)
                if fault is None and place + header.size > len(window):
                    break
                if fault is None and computed_crc(window, place, header.size) != header.crc:
                    fault = "the checksum of the batch is wrong"
                if fault is not None:
                    raise LogCorrupt(path, position + place, next_offset, fault, _REMEDY)
                yield header, window[place : place + header.size]
                next_offset = header.last_offset + 1
                place += header.size
            if place == 0:
                if len(window) < HEADER_SIZE or window_bytes >= size - position:
                    what = f"only {len(window)} bytes of a batch"
                    raise LogCorrupt(path, position, next_offset, what, _REMEDY)
                window_bytes = max(read_header(window).size, 2 * window_bytes)
            else:
                window_bytes = _WINDOW_BYTES
            position += place
    finally:
        file.close()


_BUFFER_BYTES = 1 << 20
# Bytes written before a flush. The file system commits all files together, so that the flush of a
# small file waits for the dirty pages of this one.
_UNFLUSHED_BYTES_MAX = 16 << 20


class CleanedSegment:
    """A cleaned segment, written once from front to back.

    `close` makes its contents durable, but not its files' names.
    """

    def __init__(
        self,
        filesystem: FileSystem,
        folder: str,
        base_offset: int,
        index_bytes: int,
        index_interval_bytes: int,
        pace: Pace,
    ) -> None:
        self._filesystem = filesystem
        self._folder = folder
        self._reserve = Reserve(filesystem, folder)
        self._base_offset = base_offset
        self._interval_bytes = index_interval_bytes
        self._pace = pace
        self.size = 0
        self._offsets = OffsetIndex(base_offset, index_bytes)
        self._times = TimeIndex(base_offset, index_bytes)
        self._transactions = TransactionIndex()
        self._max_timestamp, self._max_timestamp_offset = -1, base_offset
        self._bytes_since_index = 0
        self._waiting: list[Buffer] = []
        self._waiting_bytes = self._unflushed_bytes = 0
        path = self._path(LOG_SUFFIX)
        filesystem.unlink(path)
        self._file = filesystem.open(path, create=True)

    def append(self, header: BatchHeader, batch: Buffer) -> None:
        """Append a batch after all others. Raises OSError."""
        if header.max_timestamp > self._max_timestamp:
            self._max_timestamp = header.max_timestamp
            self._max_timestamp_offset = header.last_offset
        if self._bytes_since_index > self._interval_bytes:
            self._offsets.append(header.last_offset, self.size)
            self._times.append(self._max_timestamp, self._max_timestamp_offset)
            self._bytes_since_index = 0
        self._bytes_since_index += len(batch)
        self.size += len(batch)
        self._waiting.append(batch)
        self._waiting_bytes += len(batch)
        if self._waiting_bytes >= _BUFFER_BYTES:
            self._write()

    def note_aborted(self, entry: AbortedTransaction) -> None:
        """Index an aborted transaction whose marker and some of whose records stay."""
        self._transactions.append(entry)

    def close(self, removals: SegmentRemovals) -> None:
        """Write the rest, the indexes, and the removals of all passes. Raises OSError."""
        self._write()
        self._times.append(self._max_timestamp, self._max_timestamp_offset)
        self._file.fsync()
        self._file.close()
        self._write_side(OFFSET_INDEX_SUFFIX, self._offsets.encode())
        self._write_side(TIME_INDEX_SUFFIX, self._times.encode())
        # Written even if it is empty, because it replaces an index with more entries.
        self._write_side(TRANSACTION_INDEX_SUFFIX, self._transactions.encode())
        self._write_side(LEDGER_SUFFIX, encode_removals(removals))

    def _write(self) -> None:
        if self._waiting:
            self._reserve.require(self._waiting_bytes, DiskUse.OWN)
            self._file.append_many(self._waiting)
            self._pace(self._waiting_bytes)
            self._unflushed_bytes += self._waiting_bytes
            self._waiting.clear()
            self._waiting_bytes = 0
            if self._unflushed_bytes >= _UNFLUSHED_BYTES_MAX:
                self._file.fsync()
                self._unflushed_bytes = 0

    def _write_side(self, suffix: str, content: bytes) -> None:
        path = self._path(suffix)
        self._filesystem.unlink(path)
        file = self._filesystem.open(path, create=True)
        try:
            if content:
                file.append(content)
            file.fsync()
        finally:
            file.close()

    def _path(self, suffix: str) -> str:
        return f"{self._folder}/{segment_file(self._base_offset, suffix)}{CLEANED_SUFFIX}"
