"""Finds the positions of keys and values in records, without an object per record.

For readers of columns, which gather keys and values in bulk (numpy, Arrow) from the buffer itself.
Each record gives one row of eight 64-bit little-endian integers; with numpy, `frombuffer(rows,
"<i8").reshape(-1, WALK_COLUMNS)` gives the columns.
"""

from typing import Final

from librt.strings import BytesWriter, read_i16_be, read_i32_be, read_i64_be, write_i64_le
from mypy_extensions import i64

from ottla.base.crc32c import checksum
from ottla.record.codec import (
    INT_MAX,
    check_base_offset,
    greatest_delta,
    least_delta,
    read_varlong,
)
from ottla.record.compression import CorruptBatch
from ottla.record.header import (
    ATTRIBUTES_POSITION,
    CRC_POSITION,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
)

WALK_COLUMNS: Final = 8
# The columns of a row. Positions count from the start of the walked buffer; a length of -1 means
# null; the header position is that of the first header, after the count.
OFFSET: Final = 0
TIMESTAMP: Final = 1
KEY_POSITION: Final = 2
KEY_LENGTH: Final = 3
VALUE_POSITION: Final = 4
VALUE_LENGTH: Final = 5
HEADERS_POSITION: Final = 6
HEADER_COUNT: Final = 7

_CRC_MASK: Final = 0xFFFFFFFF
_LENGTH_POSITION: Final = 8
_LAST_OFFSET_DELTA_POSITION: Final = 23
_BASE_TIMESTAMP_POSITION: Final = 27
_RECORD_COUNT_POSITION: Final = 57
# Attribute bits of compression, append time, transaction and control: a plain batch has none.
_NOT_PLAIN: Final = 0x3F


class Walk:
    """Collects the rows of successive batches."""

    def __init__(self) -> None:
        self._rows = BytesWriter()

    @property
    def record_count(self) -> int:
        return len(self._rows) // (8 * WALK_COLUMNS)

    def add(
        self,
        buffer: bytes,
        start: int,
        end: int,
        record_count: int,
        base_offset: int,
        base_timestamp: int,
        shift: int = 0,
    ) -> None:
        """Walk an uncompressed records section at `buffer[start:end]`.

        Offsets and timestamps (ms) in the rows are absolute. `shift` is added to all positions, for
        a buffer that will follow other buffers. Raises CorruptBatch unless the section has exactly
        `record_count` well-formed records; then earlier rows stay unchanged.
        """
        if not 0 <= start <= end <= len(buffer):
            raise CorruptBatch(f"no records section stands at {start} to {end}")
        if record_count < 0 or record_count > (end - start) // 7:
            raise CorruptBatch(f"{record_count} records cannot stand in {end - start} bytes")
        check_base_offset(base_offset)
        size_before = len(self._rows)
        try:
            _walk(self._rows, buffer, start, end, record_count, base_offset, base_timestamp, shift)
        except IndexError as error:
            self._rows.truncate(size_before)
            raise CorruptBatch("the records section ends within a record") from error
        except CorruptBatch:
            self._rows.truncate(size_before)
            raise

    # Hot: its loop runs once per fetched batch of a reader of columns.
    def add_plain(
        self, buffer: bytes, place: i64, offset: i64, end: i64, records_max: i64, shift: int = 0
    ) -> i64:
        """Walk the plain batches that follow one another from `place` on; return where they end.

        A plain batch is whole, has the right checksum, and is uncompressed data with the producer's
        timestamps, outside of transactions, with a record for each of its offsets. The first one
        begins at `offset`, each later one where the previous one ended, and all are below `end`.
        The walk ends before the first batch that is not plain, or once there are `records_max`
        rows. Other batches are not refused here but left to `add`. `shift` is as in `add`.
        """
        view = memoryview(buffer)
        size_all: i64 = len(buffer)
        while size_all - place >= HEADER_SIZE and self.record_count < records_max:
            size: i64 = i64(read_i32_be(buffer, place + _LENGTH_POSITION)) + LENGTH_OVERHEAD
            count: i64 = i64(read_i32_be(buffer, place + _RECORD_COUNT_POSITION))
            last_delta: i64 = i64(read_i32_be(buffer, place + _LAST_OFFSET_DELTA_POSITION))
            attributes: i64 = i64(read_i16_be(buffer, place + ATTRIBUTES_POSITION))
            if (
                size < HEADER_SIZE
                or size > size_all - place
                or buffer[place + MAGIC_POSITION] != MAGIC
                or attributes & _NOT_PLAIN
                or count <= 0
                or last_delta != count - 1
                or read_i64_be(buffer, place) != offset
                or count > end - offset
            ):
                break
            crc: i64 = i64(read_i32_be(buffer, place + CRC_POSITION)) & _CRC_MASK
            if checksum(view[place + ATTRIBUTES_POSITION : place + size]) != crc:
                break
            base_timestamp: i64 = read_i64_be(buffer, place + _BASE_TIMESTAMP_POSITION)
            try:
                self.add(
                    buffer,
                    place + HEADER_SIZE,
                    place + size,
                    count,
                    offset,
                    base_timestamp,
                    shift,
                )
            except CorruptBatch:
                break
            place += size
            offset += count
        return place

    def rows(self) -> bytes:
        """Return all rows so far."""
        return self._rows.getvalue()


def walk(
    buffer: bytes, start: int, end: int, record_count: int, base_offset: int, base_timestamp: int
) -> bytes:
    """Return the rows of a single records section (see `Walk.add`)."""
    target = Walk()
    target.add(buffer, start, end, record_count, base_offset, base_timestamp)
    return target.rows()


def first_since(
    section: bytes, record_count: i64, base_timestamp: i64, timestamp: i64, delta_min: i64
) -> tuple[i64, i64]:
    """Return the timestamp and offset delta of the first record not older than `timestamp`.

    Its offset delta is at least `delta_min`; (-1, -1) if there is none. Only the lengths of earlier
    records are checked. Raises CorruptBatch if these do not fit `section`.
    """
    if record_count < 0 or record_count > len(section) // 7:
        raise CorruptBatch(f"{record_count} records cannot stand in {len(section)} bytes")
    try:
        return _first_since(section, record_count, base_timestamp, timestamp, delta_min)
    except IndexError as error:
        raise CorruptBatch("the records section ends within a record") from error


# A client may cause millions of records to be checked with one request.
def _first_since(
    section: bytes, record_count: i64, base_timestamp: i64, timestamp: i64, delta_min: i64
) -> tuple[i64, i64]:
    least: i64 = least_delta(base_timestamp)
    greatest: i64 = greatest_delta(base_timestamp)
    end: i64 = len(section)
    position: i64 = 0
    index: i64 = 0
    while index < record_count:
        index += 1
        size, position = read_varlong(section, position)
        if size < 0 or size > end - position:
            raise CorruptBatch(f"a record of {size} bytes does not fit its batch")
        stop: i64 = position + size
        delta, position = read_varlong(section, position + 1)
        if delta < least or delta > greatest:
            raise CorruptBatch("a record's timestamp leaves 64 bits")
        if base_timestamp + delta >= timestamp:
            offset_delta, position = read_varlong(section, position)
            if offset_delta >= delta_min:
                if offset_delta < 0 or offset_delta > INT_MAX:
                    raise CorruptBatch(f"a record's offset delta is {offset_delta}")
                return base_timestamp + delta, offset_delta
        position = stop
    return -1, -1


def check_section(section: bytes, record_count: i64) -> None:
    """Raise CorruptBatch unless `section` holds exactly `record_count` well-formed records.

    Their offsets must be 0, 1, 2 and so on, as a producer numbers them. Timestamps are not checked.
    """
    check_part(section, 0, len(section), record_count)


def check_part(buffer: bytes, position: i64, end: i64, record_count: i64) -> None:
    """Do `check_section` for `buffer[position:end]`, without a copy."""
    if not 0 <= position <= end <= len(buffer):
        raise CorruptBatch(f"no records section stands at {position} to {end}")
    if record_count < 0 or record_count > (end - position) // 7:
        raise CorruptBatch(f"{record_count} records cannot stand in {end - position} bytes")
    try:
        _check_part(buffer, position, end, record_count)
    except IndexError as error:
        raise CorruptBatch("the records section ends within a record") from error


# Hot: once per uncompressed batch that a leader takes; 75 records of 100 bytes in 1 µs, compiled.
def _check_part(  # noqa: C901  # In one piece: a call per number would double its time.
    section: bytes, position: i64, end: i64, record_count: i64
) -> None:
    # Most numbers have one or two bytes, which are read here without a call. The sign is the lowest
    # bit, so half of an even number is its value.
    index: i64 = 0
    while index < record_count:
        byte: i64 = section[position]
        more: i64 = section[position + 1]
        if byte > 0x7F and more < 0x80 and byte & 1 == 0:
            size = (byte & 0x7F | more << 7) >> 1
            position += 2
        else:
            size, position = read_varlong(section, position)
        if size < 0 or size > end - position:
            raise CorruptBatch(f"a record of {size} bytes does not fit its batch")
        stop = position + size
        byte = section[position + 1]
        position += 2
        if byte > 0x7F:
            _, position = read_varlong(section, position - 1)
        byte = section[position]
        more = section[position + 1]
        if byte < 0x80 and byte & 1 == 0:
            delta = byte >> 1
            position += 1
        elif more < 0x80 and byte & 1 == 0:
            delta = (byte & 0x7F | more << 7) >> 1
            position += 2
        else:
            delta, position = read_varlong(section, position)
        if delta != index:
            raise CorruptBatch(f"record {index} of the batch has offset {delta}")
        byte = section[position]
        position += 1
        if byte != 1:
            position = _skip_bytes(section, position - 1, stop)
        byte = section[position]
        more = section[position + 1]
        if byte > 0x7F and more < 0x80 and byte & 1 == 0:
            size = (byte & 0x7F | more << 7) >> 1
            position += 2
            if size > stop - position:
                raise CorruptBatch(f"a key or value of {size} bytes does not fit its record")
            position += size
        else:
            position = _skip_bytes(section, position, stop)
        byte = section[position]
        position += 1
        if byte:
            count, position = read_varlong(section, position - 1)
            if count < 0 or count > (stop - position) >> 1:
                raise CorruptBatch(f"{count} headers do not fit their record")
            position = _skip_headers(section, position, stop, count)
        if position != stop:
            raise CorruptBatch("a record's parts do not add up to its length")
        index += 1
    if position != end:
        raise CorruptBatch("bytes follow the last record of the batch")


def _skip_bytes(section: bytes, position: i64, stop: i64) -> i64:
    """Return the position after a key or value."""
    size, position = read_varlong(section, position)
    if size > stop - position:
        raise CorruptBatch(f"a key or value of {size} bytes does not fit its record")
    return position + size if size > 0 else position


# Hot: see `make bench` (codec). Most numbers are one byte: those are read here, without a call.
def _walk(
    rows: BytesWriter,
    buffer: bytes,
    position: i64,
    end: i64,
    record_count: i64,
    base_offset: i64,
    base_timestamp: i64,
    shift: i64,
) -> None:
    least: i64 = least_delta(base_timestamp)
    greatest: i64 = greatest_delta(base_timestamp)
    index: i64 = 0
    while index < record_count:
        index += 1
        size, position = read_varlong(buffer, position)
        if size < 0 or size > end - position:
            raise CorruptBatch(f"a record of {size} bytes does not fit its batch")
        stop = position + size
        # After the attributes byte, which has no meaning.
        byte: i64 = buffer[position + 1]
        delta: i64 = byte >> 1 ^ -(byte & 1)
        position += 2
        if byte > 0x7F:
            delta, position = read_varlong(buffer, position - 1)
        if delta < least or delta > greatest:
            raise CorruptBatch("a record's timestamp leaves 64 bits")
        timestamp: i64 = base_timestamp + delta
        delta, position = read_varlong(buffer, position)
        if delta < 0 or delta > INT_MAX:
            raise CorruptBatch(f"a record's offset delta is {delta}")
        write_i64_le(rows, base_offset + delta)
        write_i64_le(rows, timestamp)
        position = _walk_bytes(rows, buffer, position, stop, shift)
        position = _walk_bytes(rows, buffer, position, stop, shift)
        byte = buffer[position]
        count: i64 = byte >> 1
        position += 1
        if byte > 0x7F or byte & 1:
            count, position = read_varlong(buffer, position - 1)
        if count < 0 or count > (stop - position) >> 1:
            raise CorruptBatch(f"{count} headers do not fit their record")
        write_i64_le(rows, position + shift)
        write_i64_le(rows, count)
        if count:
            position = _skip_headers(buffer, position, stop, count)
        if position != stop:
            raise CorruptBatch("a record's parts do not add up to its length")
    if position != end:
        raise CorruptBatch("bytes follow the last record of the batch")


def _walk_bytes(rows: BytesWriter, buffer: bytes, position: i64, stop: i64, shift: i64) -> i64:
    """Write position and length of a key or value; return the position after it."""
    if buffer[position] == 1:
        write_i64_le(rows, position + 1 + shift)
        write_i64_le(rows, -1)
        return position + 1
    size, position = read_varlong(buffer, position)
    write_i64_le(rows, position + shift)
    if size < 0:
        write_i64_le(rows, -1)
        return position
    if size > stop - position:
        raise CorruptBatch(f"a key or value of {size} bytes does not fit its record")
    write_i64_le(rows, size)
    return position + size


def _skip_headers(buffer: bytes, position: i64, stop: i64, count: i64) -> i64:
    """Return the position after `count` headers."""
    index: i64 = 0
    while index < count:
        index += 1
        size, position = read_varlong(buffer, position)
        if size < 0 or size > stop - position:
            raise CorruptBatch(f"a header's name of {size} bytes does not fit its record")
        size, position = read_varlong(buffer, position + size)
        if size > stop - position:
            raise CorruptBatch(f"a header's value of {size} bytes does not fit its record")
        if size > 0:
            position += size
    return position
