"""The 61-byte header of a record batch (magic 2): read in one step, patched in place.

Format: Kafka documentation, "Record Batch". The checksum covers everything from the
attributes on, so that a broker may set base offset and leader epoch without computing it again.
"""

from struct import Struct
from typing import Final, NamedTuple

from ottla.base.crc32c import checksum

HEADER_SIZE: Final = 61
# The bytes not counted in `batch_length`: base offset and the length itself.
LENGTH_OVERHEAD: Final = 12
MAGIC: Final = 2
MAGIC_POSITION: Final = 16
CRC_POSITION: Final = 17
ATTRIBUTES_POSITION: Final = 21

COMPRESSION_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40

_HEADER = Struct(">qiibIhiqqqhii")
_OFFSET = Struct(">q")


class BatchHeader(NamedTuple):
    """The fields of a batch's header, in the order on disk.

    Offsets count records, `batch_length` counts bytes after itself, times are milliseconds.
    """

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch, header included."""
        return self.batch_length + LENGTH_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; numbers wrap from 2^31 - 1 to 0."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def compression(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd; 5 to 7 are undefined."""
        return self.attributes & COMPRESSION_MASK

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME_FLAG != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_FLAG != 0


def read_header(buffer: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """Read the header at `position`. Raises struct.error if fewer than 61 bytes follow."""
    # `_make` takes the tuple itself, in half the time of a call with thirteen arguments.
    return BatchHeader._make(_HEADER.unpack_from(buffer, position))


def set_base_offset(buffer: bytearray | memoryview, position: int, base_offset: int) -> None:
    """Set the base offset of the batch at `position`."""
    _OFFSET.pack_into(buffer, position, base_offset)


def computed_crc(buffer: bytes | bytearray | memoryview, position: int, size: int) -> int:
    """Compute the checksum of the batch of `size` bytes at `position`."""
    return checksum(memoryview(buffer)[position + ATTRIBUTES_POSITION : position + size])
