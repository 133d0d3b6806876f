"""The records inside a batch: plain typed Python that mypyc compiles where there is a C compiler.

Format: Kafka documentation, "Record". Every length is checked against the bytes at hand before
anything is allocated for it. Numbers are 64 bits wide in the compiled form and unbounded in the
plain one, so each place where they could differ checks the bound itself.
"""

from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64, mypyc_attr, u8

from ottla.base.errors import ErrorCode, OttlaError
from ottla.record.compression import CorruptBatch

Header = tuple[str, bytes | None]

# Final: the compiled form then uses literals.
LONG_MAX: Final = 9223372036854775807
LONG_MIN: Final = -9223372036854775808
INT_MAX: Final = 2147483647
NO_TIMESTAMP: Final = -1
_NO_ATTRIBUTES: Final[u8] = 0
# The length -1, which means null, in zigzag form.
_NULL: Final[u8] = 1


@mypyc_attr(acyclic=True)
class Record:
    """One record: absolute offset, timestamp in ms (-1: none), key, value, headers in order."""

    __slots__ = ("_headers", "key", "offset", "timestamp", "value")

    def __init__(
        self,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: list[Header] | None = None,
    ) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self._headers = headers

    @property
    def headers(self) -> list[Header]:
        """The headers, in order.

        Stored as None if there are none: a list for each record would cost a third more.
        """
        headers = self._headers
        return [] if headers is None else headers

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Record)
            and self.offset == other.offset
            and self.timestamp == other.timestamp
            and self.key == other.key
            and self.value == other.value
            and self.headers == other.headers
        )

    def __hash__(self) -> int:
        return hash((self.offset, self.timestamp, self.key, self.value))

    def __reduce__(self) -> tuple[object, ...]:
        # Compiled classes cannot be copied or pickled by their slots.
        return Record, (self.offset, self.timestamp, self.key, self.value, self._headers)

    def __repr__(self) -> str:
        return (
            f"Record(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, "
            f"value={self.value!r}, headers={self.headers!r})"
        )


def read_varlong(section: bytes, position: i64) -> tuple[i64, i64]:
    """Return (signed value, position after it) of a zigzag number of at most 64 bits.

    Raises IndexError if the section ends first, CorruptBatch if the number is longer.
    """
    value: i64 = 0
    shift: i64 = 0
    while True:
        byte: i64 = section[position]
        position += 1
        if shift == 63 and byte > 1:
            raise CorruptBatch("a number in a record is longer than 64 bits")
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            half = value >> 1
            if value < 0:
                # In 64-bit arithmetic, shift in a zero and not the sign.
                half &= LONG_MAX
            return half ^ -(value & 1), position
        shift += 7


def write_varlong(target: BytesWriter, value: i64) -> None:
    """Append the zigzag form of `value`, which fits 64 bits."""
    folded: i64 = value ^ (value >> 63)
    low: int = (folded & 0x3F) << 1 | value >> 63 & 1
    rest: i64 = folded >> 6
    byte: u8
    while rest:
        byte = low | 0x80
        target.append(byte)
        low = rest & 0x7F
        rest >>= 7
    byte = low
    target.append(byte)


def varlong_size(value: i64) -> i64:
    """Bytes that `write_varlong` appends for `value`."""
    rest: i64 = value ^ (value >> 63)
    size: i64 = 1
    while rest > 0x3F:
        rest >>= 7
        size += 1
    return size


def decode_records(
    section: bytes,
    record_count: int,
    base_offset: int,
    base_timestamp: int,
    append_time: int | None = None,
) -> list[Record]:
    """Return the records of an uncompressed records section.

    `append_time`, if given, is the timestamp of all of them (LogAppendTime). Raises CorruptBatch
    unless the section holds exactly `record_count` well-formed records.
    """
    if record_count < 0 or record_count > len(section) // 7:
        raise CorruptBatch(f"{record_count} records cannot stand in {len(section)} bytes")
    check_base_offset(base_offset)
    fixed = NO_TIMESTAMP if append_time is None else append_time
    try:
        return _decode(
            section, record_count, base_offset, base_timestamp, append_time is not None, fixed
        )
    except IndexError as error:
        raise CorruptBatch("the records section ends within a record") from error
    except UnicodeDecodeError as error:
        raise CorruptBatch("a header's name is not UTF-8") from error


# Hot: see `make bench` (codec). Most numbers have one or two bytes, which are read here without a
# call. The sign is the lowest bit, so half of an even number is its value.
def _decode(  # noqa: C901  # In one piece: a call per number would double its time.
    section: bytes,
    record_count: i64,
    base_offset: i64,
    base_timestamp: i64,
    has_append_time: bool,
    append_time: i64,
) -> list[Record]:
    records: list[Record] = []
    least: i64 = least_delta(base_timestamp)
    greatest: i64 = greatest_delta(base_timestamp)
    end: i64 = len(section)
    position: i64 = 0
    index: i64 = 0
    while index < record_count:
        index += 1
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
        # After the attributes byte, which has no meaning.
        byte = section[position + 1]
        position += 2
        delta: i64 = byte >> 1 ^ -(byte & 1)
        if byte > 0x7F:
            delta, position = read_varlong(section, position - 1)
        if delta < least or delta > greatest:
            raise CorruptBatch("a record's timestamp leaves 64 bits")
        timestamp = append_time if has_append_time else base_timestamp + delta
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
            if delta < 0 or delta > INT_MAX:
                raise CorruptBatch(f"a record's offset delta is {delta}")
        offset = base_offset + delta
        key: bytes | None = None
        if section[position] == _NULL:
            position += 1
        else:
            size, position = read_varlong(section, position)
            if size >= 0:
                if size > stop - position:
                    raise CorruptBatch(f"a key of {size} bytes does not fit its record")
                key = section[position : position + size]
                position += size
        byte = section[position]
        more = section[position + 1]
        if byte > 0x7F and more < 0x80 and byte & 1 == 0:
            size = (byte & 0x7F | more << 7) >> 1
            position += 2
        else:
            size, position = read_varlong(section, position)
        value: bytes | None = None
        if size >= 0:
            if size > stop - position:
                raise CorruptBatch(f"a value of {size} bytes does not fit its record")
            value = section[position : position + size]
            position += size
        headers: list[Header] | None = None
        byte = section[position]
        position += 1
        if byte:
            count, position = read_varlong(section, position - 1)
            headers = []
            position = _decode_headers(section, position, stop, count, headers)
        if position != stop:
            raise CorruptBatch("a record's parts do not add up to its length")
        records.append(Record(offset, timestamp, key, value, headers))
    if position != end:
        raise CorruptBatch("bytes follow the last record of the batch")
    return records


def _decode_headers(
    section: bytes, position: i64, stop: i64, count: i64, headers: list[Header]
) -> i64:
    """Append `count` headers to `headers`; return the position after them."""
    if count < 0 or count > (stop - position) >> 1:
        raise CorruptBatch(f"{count} headers do not fit their record")
    index: i64 = 0
    while index < count:
        index += 1
        size, position = read_varlong(section, position)
        if size < 0 or size > stop - position:
            raise CorruptBatch(f"a header's name of {size} bytes does not fit its record")
        name = section[position : position + size].decode("utf-8")
        position += size
        size, position = read_varlong(section, position)
        if size < 0:
            headers.append((name, None))
            continue
        if size > stop - position:
            raise CorruptBatch(f"a header's value of {size} bytes does not fit its record")
        headers.append((name, section[position : position + size]))
        position += size
    return position


def check_base_offset(base_offset: int) -> None:
    """Refuse a batch whose offsets could exceed 64 bits (the compiled form would overflow)."""
    if base_offset < 0 or base_offset > LONG_MAX - INT_MAX:
        raise CorruptBatch(f"a batch cannot begin at offset {base_offset}")


def least_delta(base: int) -> int:
    """The lowest timestamp delta that stays within 64 bits."""
    return LONG_MIN - base if base < 0 else LONG_MIN


def greatest_delta(base: int) -> int:
    """The highest timestamp delta that stays within 64 bits."""
    return LONG_MAX - base if base > 0 else LONG_MAX


def check_timestamp(timestamp: int) -> None:
    """Refuse a timestamp below -1, or beyond 64 bits."""
    if timestamp < NO_TIMESTAMP or timestamp >= LONG_MAX:
        raise OttlaError(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {timestamp} is not milliseconds since 1970, nor -1 for none",
        )


def record_size(
    timestamp_delta: i64,
    offset_delta: i64,
    key: bytes | None,
    value: bytes | None,
    headers_size: i64,
) -> i64:
    """Return the size of a record without its length field; its headers have `headers_size`."""
    size: i64 = 1 + varlong_size(timestamp_delta) + varlong_size(offset_delta) + headers_size
    if key is None:
        size += 1
    else:
        size += varlong_size(len(key)) + len(key)
    if value is None:
        size += 1
    else:
        size += varlong_size(len(value)) + len(value)
    return size


# Hot: see `make bench` (codec).
def write_record(
    target: BytesWriter,
    size: i64,
    timestamp_delta: i64,
    offset_delta: i64,
    key: bytes | None,
    value: bytes | None,
    headers: bytes,
) -> None:
    """Append one record, preceded by its length `size`; `headers` are encoded already."""
    write_varlong(target, size)
    target.append(_NO_ATTRIBUTES)
    write_varlong(target, timestamp_delta)
    write_varlong(target, offset_delta)
    if key is None:
        target.append(_NULL)
    else:
        write_varlong(target, len(key))
        target.write(key)
    if value is None:
        target.append(_NULL)
    else:
        write_varlong(target, len(value))
        target.write(value)
    target.write(headers)


def encode_headers(headers: list[Header]) -> bytes:
    """Encode the count of headers and the headers."""
    target = BytesWriter()
    write_varlong(target, len(headers))
    for name, value in headers:
        encoded = name.encode("utf-8")
        write_varlong(target, len(encoded))
        target.write(encoded)
        if value is None:
            target.append(_NULL)
        else:
            write_varlong(target, len(value))
            target.write(value)
    return target.getvalue()
