"""Builds a batch from records, added one by one or from parallel lists, which is faster.

A builder encodes records as they are added, and writes the batch's header and checksum once, at the
end. Callers limit the size of a batch.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Any, Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from ottla.base.crc32c import checksum
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from ottla.record.codec import (
    INT_MAX,
    NO_TIMESTAMP,
    Header,
    check_timestamp,
    encode_headers,
    record_size,
    varlong_size,
    write_record,
)
from ottla.record.compression import Compression, compress
from ottla.record.header import (
    ATTRIBUTES_POSITION,
    CONTROL_FLAG,
    CRC_POSITION,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_FLAG,
    MAGIC,
    TRANSACTIONAL_FLAG,
)

CREATE_TIME = 0
LOG_APPEND_TIME = 1

_HEADER: Final = Struct(">qiibIhiqqqhii")
_CRC: Final = Struct(">I")
# A time far in the future that compiled code need not box: later ones are checked twice.
_DISTANT_MS: Final = 1 << 60
# The limit of a closed builder.
_CLOSED: Final = -1
_NO_HEADERS: Final = b"\x00"


class BatchBuilder:
    """One batch under construction. Times in milliseconds, sizes in bytes.

    The leader assigns offsets later, so `base_offset` matters only to tests and to code that writes
    logs. `timestamp_type` LOG_APPEND_TIME sets the attribute, as a leader would.
    """

    def __init__(
        self,
        compression: int = Compression.NONE,
        level: int | None = None,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        transactional: bool = False,
        is_control: bool = False,
        timestamp_type: int = CREATE_TIME,
        base_offset: int = 0,
        leader_epoch: int = -1,
    ) -> None:
        self.compression = compression
        self.level = level
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.base_offset = base_offset
        self.leader_epoch = leader_epoch
        # The size limit of `add` and `fill`, in bytes before compression.
        self.limit_bytes: i64 = INT_MAX
        self.record_count: i64 = 0
        self.base_timestamp: i64 = NO_TIMESTAMP
        self.max_timestamp: i64 = NO_TIMESTAMP
        self._flags = (
            (TRANSACTIONAL_FLAG if transactional else 0)
            | (CONTROL_FLAG if is_control else 0)
            | (LOG_APPEND_TIME_FLAG if timestamp_type == LOG_APPEND_TIME else 0)
        )
        self._section = BytesWriter()

    @property
    def size_estimate(self) -> int:
        """The size of the batch before compression; exact for an uncompressed batch."""
        return HEADER_SIZE + len(self._section)

    def close(self) -> None:
        """Refuse all later `add` and `fill` calls, even of a first record."""
        self.limit_bytes = _CLOSED

    # Hot: once per record that is sent by itself.
    def add(self, timestamp: int, key: bytes | None, value: bytes | None) -> bool:
        """Add one record without headers, unless the batch would exceed its limit.

        The first record is always added. Returns whether the record was added. Raises OttlaError
        INVALID_TIMESTAMP.
        """
        if timestamp < NO_TIMESTAMP or timestamp > _DISTANT_MS:
            check_timestamp(timestamp)
        return self._add(timestamp, key, value, _NO_HEADERS, self.limit_bytes)

    def append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[Header] = (),
    ) -> None:
        """Add one record, ignoring the limit. Raises OttlaError INVALID_TIMESTAMP."""
        check_timestamp(timestamp)
        encoded = encode_headers(list(headers)) if headers else _NO_HEADERS
        self._add(timestamp, key, value, encoded, INT_MAX)

    # Hot: see `make bench` (codec).
    def _add(
        self, timestamp: i64, key: bytes | None, value: bytes | None, headers: bytes, limit: i64
    ) -> bool:
        number: i64 = self.record_count
        delta: i64 = 0 if number == 0 else timestamp - self.base_timestamp
        size: i64 = record_size(delta, number, key, value, len(headers))
        end: i64 = HEADER_SIZE + len(self._section) + varlong_size(size) + size
        if end > limit and (number > 0 or limit == _CLOSED):
            return False
        if number == 0:
            self.base_timestamp = timestamp
        write_record(self._section, size, delta, number, key, value, headers)
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        self.record_count = number + 1
        return True

    def fill(
        self,
        timestamps: list[int] | None,
        keys: list[bytes | None] | None,
        values: list[bytes | None],
        start: int = 0,
        timestamp: int = NO_TIMESTAMP,
    ) -> int:
        """Add records without headers, from index `start` of the lists, as long as they fit.

        The lists are equally long. `keys` None means that no record has a key, `timestamps` None
        that all records have `timestamp`. Returns the index of the first record that was not added.
        Raises OttlaError INVALID_TIMESTAMP.
        """
        return self._fill(timestamps, timestamp, keys, values, start, self.limit_bytes)

    def _fill(
        self,
        timestamps: list[int] | None,
        timestamp: int,
        keys: list[bytes | None] | None,
        values: list[bytes | None],
        start: i64,
        limit: i64,
    ) -> int:
        index: i64 = start
        count: i64 = len(values)
        while index < count:
            if timestamps is not None:
                timestamp = timestamps[index]
            if timestamp < NO_TIMESTAMP or timestamp > _DISTANT_MS:
                check_timestamp(timestamp)
            key = None if keys is None else keys[index]
            if not self._add(timestamp, key, values[index], _NO_HEADERS, limit):
                break
            index += 1
        return index

    def extend(
        self,
        timestamps: list[int],
        keys: list[bytes | None] | None,
        values: list[bytes | None],
    ) -> None:
        """Add a record without headers for each of `values`; `keys` None means none has a key.

        The lists are parallel. Raises ValueError if they are not equally long, OttlaError
        INVALID_TIMESTAMP; then nothing was added.
        """
        count = len(values)
        if len(timestamps) != count or (keys is not None and len(keys) != count):
            raise ValueError("timestamps, keys and values must be equally long")
        for timestamp in timestamps:
            if timestamp < NO_TIMESTAMP or timestamp > _DISTANT_MS:
                check_timestamp(timestamp)
        self._fill(timestamps, NO_TIMESTAMP, keys, values, 0, INT_MAX)

    def build(self) -> bytearray:
        """Return the whole batch, compressed and checksummed. At least one record is needed."""
        head, payload = self.build_parts()
        return head + payload

    def build_parts(self) -> tuple[bytearray, bytes]:
        """Return the batch as its header, which may be patched, and the rest."""
        assert 0 < self.record_count <= INT_MAX
        payload = bytes(compress(self.compression, self._section.getvalue(), self.level))
        size = HEADER_SIZE + len(payload)
        if size > INT_MAX:
            raise OttlaError(ErrorCode.MESSAGE_TOO_LARGE, f"a batch of {size} bytes is too large")
        head = bytearray(
            _HEADER.pack(
                self.base_offset,
                size - LENGTH_OVERHEAD,
                self.leader_epoch,
                MAGIC,
                0,
                self._flags | self.compression,
                self.record_count - 1,
                self.base_timestamp,
                self.max_timestamp,
                self.producer_id,
                self.producer_epoch,
                self.base_sequence,
                self.record_count,
            )
        )
        seal(head, payload)
        return head, payload


def seal(head: bytearray, payload: bytes) -> None:
    """Write the checksum of a batch into its header, the 61 bytes before `payload`."""
    crc = checksum(payload, checksum(memoryview(head)[ATTRIBUTES_POSITION:]))
    _CRC.pack_into(head, CRC_POSITION, crc)


def are_bytes(column: list[Any]) -> bool:
    """Whether `column` has only bytes and None."""
    for value in column:  # noqa: SIM110  # Compiled, a loop takes a tenth of a generator's time.
        if value is not None and not isinstance(value, bytes):
            return False
    return True


def build_batch(
    timestamps: list[int],
    keys: list[bytes | None] | None,
    values: list[bytes | None],
    *,
    compression: int = Compression.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    base_offset: int = 0,
) -> bytearray:
    """Return a batch of one record per value, from parallel lists (see `BatchBuilder.extend`)."""
    builder = BatchBuilder(
        compression,
        level,
        producer_id,
        producer_epoch,
        base_sequence,
        transactional,
        base_offset=base_offset,
    )
    builder.extend(timestamps, keys, values)
    return builder.build()


def encode_records(
    timestamps: list[int], keys: list[bytes | None] | None, values: list[bytes | None]
) -> bytes:
    """Return only the records section, timestamps relative to the first."""
    builder = BatchBuilder()
    builder.extend(timestamps, keys, values)
    return builder._section.getvalue()
