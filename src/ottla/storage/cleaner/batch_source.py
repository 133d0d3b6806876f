"""The batches of a segment file one after the other, by large reads, each with its bytes."""

from collections.abc import Callable, Iterator

from ottla.record.header import HEADER_SIZE, BatchHeader, computed_crc, read_header
from ottla.storage.disk.errors import LogCorrupt
from ottla.storage.disk.filesystem import FileSystem
from ottla.storage.log.batch_walk import header_fault

_WINDOW_BYTES = 1 << 20
_REMEDY = (
    "The log is not compacted; where another replica is in sync, this one is made anew from the "
    "leader, else restore the file from a copy."
)

# Called with how many bytes were read or written; waits to keep a rate, or raises to give up.
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
