"""CRC-32C (Castagnoli), computed in C: the checksum of record batches."""

from crc32c import crc32c as _crc32c


def checksum(buffer: bytes | bytearray | memoryview, value: int = 0) -> int:
    """The checksum of `buffer`, continuing `value`; 32 bits, unsigned."""
    crc: int = _crc32c(buffer, value)
    return crc
