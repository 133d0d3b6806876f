"""The checks that a leader makes on a client's batch before the append, and its changes to it.

The header, the checksum and the counts are always checked, and the form of uncompressed records.
Compressed records are expanded only if a setting demands it: another codec (`compression.type`),
keys (compacted topics), a limit for old timestamps, or doubtful timestamps. Unless a setting
demands a change, the batch's bytes stay as they are. The log checks sequence numbers, because it
knows the earlier batches.
"""

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.record.claims import LogConfigLike, is_suspect, refuse, whole_batch
from ottla.record.codec import LONG_MAX, Record, decode_records
from ottla.record.compression import (
    Buffer,
    Compression,
    CorruptBatch,
    check_magic,
    compress,
    expanded_bytes_max,
)
from ottla.record.header import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    CRC_POSITION,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_FLAG,
    BatchHeader,
    computed_crc,
    read_header,
)
from ottla.record.reader import section
from ottla.record.walk import WALK_COLUMNS, check_section, walk

__all__ = ["Expansion", "LogConfigLike", "RejectedBatch", "Validated", "validate"]

_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_LENGTH = Struct(">i")
_MAX_TIMESTAMP = Struct(">q")
_LENGTH_POSITION = 8
_MAX_TIMESTAMP_POSITION = 35
_SHOWN_MAX = 3
# The most faulty records that an answer lists: a megabyte may hold millions.
_RECORD_ERRORS_MAX = 100
# Beyond this size, expanded records are not decoded to objects.
_DECODED_BYTES_MAX = 4 << 20
# From a row of `walk`: offset, timestamp, and the key's position and size.
_ROW = Struct(f"<4q{8 * (WALK_COLUMNS - 4)}x")


class Validated(NamedTuple):
    """A batch that may be appended: the client's own bytes, or a new buffer if changed."""

    buffer: memoryview | bytearray
    header: BatchHeader


class Expansion:
    """The number of bytes to which one request's batches were expanded so far."""

    def __init__(self) -> None:
        self.size_bytes = 0


class RejectedBatch(OttlaError):
    """A refused batch; `record_errors` has (index in the batch, reason) for faulty records."""

    def __init__(
        self, code: ErrorCode, message: str, record_errors: tuple[tuple[int, str], ...] = ()
    ) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


# Hot: see `make bench` (codec).
def validate(
    buffer: memoryview,
    config: LogConfigLike,
    now_ms: int,
    *,
    produce_version: int = 13,
    expansion: Expansion | None = None,
) -> Validated:
    """Check the single batch that a produce request (version 3 or later) has for a partition.

    The bytes to which it is expanded are added to `expansion`. `buffer` must be writable if
    settings may demand a change in place. Raises OttlaError with the code that Kafka answers;
    RejectedBatch if single records are at fault.
    """
    header = whole_batch(buffer)
    attributes = header.attributes
    codec = attributes & COMPRESSION_MASK
    if is_suspect(header, config, attributes):
        refuse(header, config, produce_version)
    if computed_crc(buffer, 0, len(buffer)) != header.crc:
        raise CorruptBatch("the batch's checksum does not match its bytes; it was damaged")
    target = codec
    if config.compression_type != "producer":
        target = _TARGETS[config.compression_type]
    is_append_time = config.message_timestamp_type == "LogAppendTime"
    bounded = not is_append_time and _is_doubtful(header, config, now_ms)
    newest = now_ms if is_append_time else header.max_timestamp
    expanded: bytes | None = None
    if bounded or target != codec or config.is_compacted:
        # If expanding fails, nearly the allowed size may have been expanded.
        size_bytes = most = expanded_bytes_max(len(buffer))
        try:
            expanded = section(buffer, 0, header, most)
            size_bytes = len(expanded)
        finally:
            if expansion is not None:
                expansion.size_bytes += size_bytes
        found = _check_records(expanded, header, config, now_ms, bounded)
        if not is_append_time:
            newest = found
    else:
        _check_outside(buffer, codec, header.record_count)
    if target == codec and not is_append_time and newest == header.max_timestamp:
        return Validated(buffer, header)
    return _changed(buffer, header, config, target, expanded, newest)


def _check_outside(buffer: memoryview, codec: int, record_count: int) -> None:
    """Check the records as far as possible without expanding them.

    They must not be appended if a consumer cannot read them: it could never get past them.
    """
    payload = buffer[HEADER_SIZE:]
    try:
        if codec == Compression.NONE:
            check_section(payload.tobytes(), record_count)
        else:
            check_magic(codec, payload)
    except CorruptBatch as error:
        raise OttlaError(ErrorCode.INVALID_RECORD, error.message) from error


_TARGETS = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}


def _is_doubtful(header: BatchHeader, config: LogConfigLike, now_ms: int) -> bool:
    """Return whether the timestamps of single records must be checked.

    For the limit on future timestamps the header's greatest one is enough, unless it is below the
    base timestamp. Past timestamps are checked only if the topic limits them.
    """
    return (
        header.max_timestamp - now_ms > config.message_timestamp_after_max_ms
        or header.max_timestamp < header.base_timestamp
        or config.message_timestamp_before_max_ms < LONG_MAX
    )


def _check_records(
    expanded: bytes, header: BatchHeader, config: LogConfigLike, now_ms: int, bounded: bool
) -> int:
    """Check each record: well-formed, with a key if compacted, within the time bounds.

    Return the newest timestamp among them.
    """
    records: Iterable[Record]
    if len(expanded) <= _DECODED_BYTES_MAX:
        records = decode_records(
            expanded, header.record_count, header.base_offset, header.base_timestamp
        )
    else:
        records = _one_by_one(expanded, header)
    keyless, untimely = _Faults(), _Faults()
    newest = -LONG_MAX
    for index, record in enumerate(records):
        if record.offset != index:
            raise OttlaError(
                ErrorCode.INVALID_RECORD, f"record {index} of the batch has offset {record.offset}"
            )
        newest = max(newest, record.timestamp)
        if record.key is None and config.is_compacted:
            keyless.add(index, "a compacted topic needs a key in each record")
        if bounded and _is_untimely(record, config, now_ms):
            untimely.add(index, f"timestamp {record.timestamp} is out of range")
    if keyless.count:
        raise _rejected(ErrorCode.INVALID_RECORD, keyless)
    if untimely.count:
        raise _rejected(ErrorCode.INVALID_TIMESTAMP, untimely)
    return newest


def _one_by_one(expanded: bytes, header: BatchHeader) -> Iterator[Record]:
    """Yield the records one at a time, without values and headers.

    A batch may be crafted to expand to many times its size: a few kilobytes would become hundreds
    of megabytes of decoded records.
    """
    try:
        check_section(expanded, header.record_count)
    except CorruptBatch as error:
        raise OttlaError(ErrorCode.INVALID_RECORD, error.message) from error
    count, base = header.record_count, header.base_timestamp
    rows = walk(expanded, 0, len(expanded), count, header.base_offset, base)
    for offset, timestamp, _, key_bytes in _ROW.iter_unpack(rows):
        yield Record(offset, timestamp, None if key_bytes < 0 else b"", None, None)


def _is_untimely(record: Record, config: LogConfigLike, now_ms: int) -> bool:
    if record.timestamp == -1:
        return False
    return (
        now_ms - record.timestamp > config.message_timestamp_before_max_ms
        or record.timestamp - now_ms > config.message_timestamp_after_max_ms
    )


class _Faults:
    """The number of faulty records, and the first ones."""

    def __init__(self) -> None:
        self.count = 0
        self.listed: list[tuple[int, str]] = []

    def add(self, index: int, reason: str) -> None:
        self.count += 1
        if len(self.listed) < _RECORD_ERRORS_MAX:
            self.listed.append((index, reason))


def _rejected(code: ErrorCode, faults: _Faults) -> RejectedBatch:
    """Return the error that shows the first few faulty records, and lists the first hundred."""
    shown = "; ".join(f"record {index}: {reason}" for index, reason in faults.listed[:_SHOWN_MAX])
    return RejectedBatch(
        code, f"{faults.count} records were refused: {shown}", tuple(faults.listed)
    )


def _changed(
    buffer: memoryview,
    header: BatchHeader,
    config: LogConfigLike,
    target: int,
    expanded: bytes | None,
    newest: int,
) -> Validated:
    """Change the batch's codec, its newest timestamp, or both, and its checksum."""
    batch: memoryview | bytearray = buffer
    attributes = header.attributes
    if target != attributes & COMPRESSION_MASK:
        assert expanded is not None
        payload: Buffer = compress(target, expanded, _level(target, config))
        batch = bytearray(buffer[:HEADER_SIZE])
        batch += payload
        if len(batch) > config.max_message_bytes:
            raise OttlaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"the batch has {len(batch)} bytes after conversion to compression.type="
                f"{config.compression_type}, max.message.bytes is {config.max_message_bytes}",
            )
        _LENGTH.pack_into(batch, _LENGTH_POSITION, len(batch) - LENGTH_OVERHEAD)
        attributes = attributes & ~COMPRESSION_MASK | target
    if config.message_timestamp_type == "LogAppendTime":
        attributes |= LOG_APPEND_TIME_FLAG
    _MAX_TIMESTAMP.pack_into(batch, _MAX_TIMESTAMP_POSITION, newest)
    _ATTRIBUTES.pack_into(batch, ATTRIBUTES_POSITION, attributes)
    _CRC.pack_into(batch, CRC_POSITION, computed_crc(batch, 0, len(batch)))
    return Validated(batch, read_header(batch))


def _level(codec: int, config: LogConfigLike) -> int | None:
    """The compression level of `codec` in the topic's settings."""
    match codec:
        case Compression.GZIP:
            return config.compression_gzip_level
        case Compression.LZ4:
            return config.compression_lz4_level
        case Compression.ZSTD:
            return config.compression_zstd_level
    return None
