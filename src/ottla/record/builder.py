"""From records to a batch.

A builder collects records of one batch and writes it once; `build_batch` does the same from
parallel lists, which is the fast way. Neither decides when a batch is full.
"""

from collections.abc import Iterable
from struct import Struct

from librt.strings import BytesWriter

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from ottla.record.codec import (
    INT_MAX,
    NO_TIMESTAMP,
    Header,
    check_timestamp,
    encode_columns,
    encode_record,
)
from ottla.record.compression import Compression, compress
from ottla.record.header import (
    CONTROL_FLAG,
    CRC_POSITION,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_FLAG,
    MAGIC,
    TRANSACTIONAL_FLAG,
    computed_crc,
)

CREATE_TIME = 0
LOG_APPEND_TIME = 1

_HEADER = Struct(">qiibIhiqqqhii")
_CRC = Struct(">I")


class BatchBuilder:
    """One batch in the making. Times in milliseconds, sizes in bytes.

    The leader gives the batch its place afterwards, so `base_offset` matters only to tests and
    to writers of logs. `timestamp_type` LOG_APPEND_TIME sets the attribute, as a leader would.
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
        self.record_count = 0
        self.base_timestamp = NO_TIMESTAMP
        self.max_timestamp = NO_TIMESTAMP
        self._flags = (
            (TRANSACTIONAL_FLAG if transactional else 0)
            | (CONTROL_FLAG if is_control else 0)
            | (LOG_APPEND_TIME_FLAG if timestamp_type == LOG_APPEND_TIME else 0)
        )
        self._section = BytesWriter()

    @property
    def size_estimate(self) -> int:
        """Bytes of the batch before compression: the exact size where there is none."""
        return HEADER_SIZE + len(self._section)

    def append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[Header] = (),
    ) -> None:
        """Add one record. Raises OttlaError INVALID_TIMESTAMP."""
        check_timestamp(timestamp)
        if self.record_count == 0:
            self.base_timestamp = timestamp
        encode_record(
            self._section,
            timestamp - self.base_timestamp,
            self.record_count,
            key,
            value,
            list(headers) if headers else None,
        )
        self.max_timestamp = max(self.max_timestamp, timestamp)
        self.record_count += 1

    def extend(
        self,
        timestamps: list[int],
        keys: list[bytes | None] | None,
        values: list[bytes | None],
    ) -> None:
        """Add a record without headers for each of `values`; `keys` None means none has a key.

        The lists are parallel. Raises ValueError where they are not equally long, OttlaError
        INVALID_TIMESTAMP.
        """
        count = len(values)
        if len(timestamps) != count or (keys is not None and len(keys) != count):
            raise ValueError("timestamps, keys and values must be equally long")
        if count == 0:
            return
        oldest = min(timestamps)
        newest = max(timestamps)
        check_timestamp(oldest)
        check_timestamp(newest)
        if self.record_count == 0:
            self.base_timestamp = timestamps[0]
        encode_columns(
            self._section, self.base_timestamp, self.record_count, timestamps, keys, values
        )
        self.max_timestamp = max(self.max_timestamp, newest)
        self.record_count += count

    def build(self) -> bytearray:
        """Return the whole batch, compressed and checksummed. At least one record is needed."""
        assert 0 < self.record_count <= INT_MAX
        payload = compress(self.compression, self._section.getvalue(), self.level)
        size = HEADER_SIZE + len(payload)
        if size > INT_MAX:
            raise OttlaError(ErrorCode.MESSAGE_TOO_LARGE, f"a batch of {size} bytes is too large")
        batch = bytearray(size)
        _HEADER.pack_into(
            batch,
            0,
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
        batch[HEADER_SIZE:] = payload
        _CRC.pack_into(batch, CRC_POSITION, computed_crc(batch, 0, size))
        return batch


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
