"""Reads the batches of a segment in order, and verifies each header and checksum."""

from collections.abc import Iterator

from ottla.record.header import HEADER_SIZE, BatchHeader, computed_crc, read_header
from ottla.storage.disk.errors import LogCorrupt
from ottla.storage.disk.filesystem import File
from ottla.storage.segment.batch_walk import header_fault

# Bytes of a segment, and the positions and headers of the whole batches in them.
Window = tuple[bytes, list[tuple[int, BatchHeader]]]


def checked_batches(
    file: File,
    path: str,
    size: int,
    offset_min: int,
    *,
    remedy: str,
    offset_end: int = 2**63,
    position: int = 0,
    window_bytes: int = 1 << 20,
) -> Iterator[Window]:
    """Yield the batches from `position` to `size`, about `window_bytes` of them at a time.

    Offsets must rise from `offset_min` on, and stay below `offset_end`. Each step may run in any
    thread. Raises OSError, and LogCorrupt with `path` and `remedy` at the first damage.
    """
    wanted = window_bytes
    while position < size:
        window = file.pread(min(wanted, size - position), position)
        found, place, fault = _whole_batches(window, size - position, offset_min, offset_end)
        if found:
            offset_min = found[-1][1].last_offset + 1
            yield window, found
        elif fault is None and (len(window) < HEADER_SIZE or wanted >= size - position):
            fault = f"only {len(window)} bytes of a batch"
        if fault is not None:
            raise LogCorrupt(path, position + place, offset_min, fault, remedy)
        wanted = window_bytes if found else max(read_header(window).size, 2 * wanted)
        position += place


def _whole_batches(
    window: bytes, room: int, offset_min: int, offset_end: int
) -> tuple[list[tuple[int, BatchHeader]], int, str | None]:
    """Return the good batches at the beginning of `window`, their end, and the fault after them.

    `room` is the number of bytes from the beginning of `window` to the end of the segment.
    """
    found: list[tuple[int, BatchHeader]] = []
    place = 0
    while place + HEADER_SIZE <= len(window):
        header = read_header(window, place)
        fault = header_fault(header, room - place, offset_min)
        if fault is None and header.last_offset >= offset_end:
            fault = f"base offset {header.base_offset} is too high for its segment"
        if fault is None and place + header.size > len(window):
            break
        if fault is None and computed_crc(window, place, header.size) != header.crc:
            fault = "the checksum of the batch is wrong"
        if fault is not None:
            return found, place, fault
        found.append((place, header))
        place += header.size
        offset_min = header.last_offset + 1
    return found, place, None
