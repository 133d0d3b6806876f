"""Checks the claims in the header of a client's batch, and refuses those a leader must not accept.

The error codes are those of Apache Kafka 4.3, found by giving the same bytes to its own validator.
Only codecs 5 to 7 get UNSUPPORTED_COMPRESSION_TYPE, where Kafka answers an unknown server error.
"""

from struct import Struct
from typing import Final, Protocol

from ottla.base.errors import ErrorCode, OttlaError
from ottla.record.compression import Compression, CorruptBatch, unknown_codec
from ottla.record.header import (
    COMPRESSION_MASK,
    CONTROL_FLAG,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_FLAG,
    MAGIC,
    MAGIC_POSITION,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    read_header,
)

_LENGTH = Struct(">i")
_LENGTH_POSITION = 8
# Offset, length and the smallest record of formats 0 and 1.
_LEGACY_SIZE_MIN = 12 + 14
_FIRST_PRODUCE_VERSION_WITH_ZSTD = 7
_SUSPECT_FLAGS: Final = LOG_APPEND_TIME_FLAG | CONTROL_FLAG | TRANSACTIONAL_FLAG
# Every produce version may carry the codecs up to this one.
_LAST_PLAIN_CODEC: Final = 3


class LogConfigLike(Protocol):
    """The topic settings that concern a batch; `storage.segment.config.LogConfig` has them."""

    @property
    def max_message_bytes(self) -> int: ...
    @property
    def segment_bytes(self) -> int: ...
    @property
    def compression_type(self) -> str: ...
    @property
    def compression_gzip_level(self) -> int: ...
    @property
    def compression_lz4_level(self) -> int: ...
    @property
    def compression_zstd_level(self) -> int: ...
    @property
    def message_timestamp_type(self) -> str: ...
    @property
    def message_timestamp_before_max_ms(self) -> int: ...
    @property
    def message_timestamp_after_max_ms(self) -> int: ...
    @property
    def is_compacted(self) -> bool: ...


def whole_batch(buffer: memoryview) -> BatchHeader:
    """Read the header of the single batch that `buffer` must contain."""
    length = len(buffer)
    if length < HEADER_SIZE:
        raise _no_single_batch(buffer)
    header = read_header(buffer)
    if header.magic != MAGIC or header.size != length:
        raise _no_single_batch(buffer)
    return header


def _no_single_batch(buffer: memoryview) -> OttlaError:
    """Return the error for a `buffer` that is not one batch, with Kafka 4.3's code."""
    length = len(buffer)
    if length <= MAGIC_POSITION:
        return OttlaError(ErrorCode.INVALID_RECORD, f"{length} bytes hold no record batch")
    size = _LENGTH.unpack_from(buffer, _LENGTH_POSITION)[0] + LENGTH_OVERHEAD
    magic = buffer[MAGIC_POSITION]
    if magic > MAGIC:
        return CorruptBatch(f"record format {magic} does not exist")
    if size < _LEGACY_SIZE_MIN or (magic == MAGIC and size < HEADER_SIZE):
        return CorruptBatch(f"a record batch cannot have {size} bytes")
    if size > length:
        return OttlaError(
            ErrorCode.INVALID_RECORD, f"the batch claims {size} bytes, only {length} came"
        )
    if magic < MAGIC:
        return OttlaError(
            ErrorCode.INVALID_RECORD,
            f"record format {magic} is not supported; use a client that writes format 2 "
            "(any since Kafka 0.11)",
        )
    return OttlaError(
        ErrorCode.INVALID_RECORD,
        f"a produce request must hold exactly one record batch for each partition; "
        f"{length - size} bytes follow the first",
    )


def is_suspect(header: BatchHeader, config: LogConfigLike, attributes: int) -> bool:
    """Whether a header has any claim that `refuse` might refuse, in a single test."""
    record_count = header.record_count
    size = header.batch_length + LENGTH_OVERHEAD
    return (
        attributes & _SUSPECT_FLAGS != 0
        or attributes & COMPRESSION_MASK > _LAST_PLAIN_CODEC
        or record_count <= 0
        or header.last_offset_delta != record_count - 1
        or header.base_offset != 0
        or size > config.max_message_bytes
        or size > config.segment_bytes
        or (header.producer_id >= 0 and (header.base_sequence < 0 or header.producer_epoch < 0))
    )


def refuse(header: BatchHeader, config: LogConfigLike, produce_version: int) -> None:
    """Raise for claims that a client must not make; return if the header is valid after all."""
    if header.size > config.max_message_bytes:
        raise OttlaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch has {header.size} bytes, max.message.bytes is {config.max_message_bytes}",
        )
    if header.size > config.segment_bytes:
        raise OttlaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"the batch has {header.size} bytes, segment.bytes is {config.segment_bytes}",
        )
    codec = header.compression
    if codec > Compression.ZSTD:
        raise unknown_codec(codec)
    if codec == Compression.ZSTD and produce_version < _FIRST_PRODUCE_VERSION_WITH_ZSTD:
        raise OttlaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"zstd needs produce version 7 or later, this is {produce_version}",
        )
    if header.is_log_append_time:
        raise OttlaError(
            ErrorCode.INVALID_TIMESTAMP, "a producer may not set the timestamp type LogAppendTime"
        )
    fault = _fault(header)
    if fault:
        raise OttlaError(ErrorCode.INVALID_RECORD, fault)


def _fault(header: BatchHeader) -> str:
    """Return the fault of a client's batch, if there is one."""
    if header.record_count <= 0:
        return f"the batch claims {header.record_count} records"
    if header.last_offset_delta != header.record_count - 1:
        return (
            f"the batch claims {header.record_count} records, "
            f"its last offset delta is {header.last_offset_delta}"
        )
    if header.base_offset != 0:
        return f"the batch's base offset is {header.base_offset}; a client must send 0"
    if header.is_control:
        return "clients may not write control batches"
    if header.producer_id >= 0:
        if header.base_sequence < 0:
            return f"producer {header.producer_id} sent base sequence {header.base_sequence}"
        if header.producer_epoch < 0:
            return f"producer {header.producer_id} sent epoch {header.producer_epoch}"
    elif header.is_transactional:
        return "a transactional batch needs a producer id"
    return ""
