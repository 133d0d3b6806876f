"""Variable-length integers: 7 bits a byte, least significant first (Protocol Buffers' form).

Kafka uses the unsigned form in flexible messages and the zigzag form in records.
"""


def read_unsigned(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """Return (value, position after it). At most 5 bytes are read.

    Raises IndexError if the buffer ends first, ValueError if the number is longer.
    """
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        if shift == 28 and byte > 0x0F:
            raise ValueError("varint is longer than 32 bits")
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def read_zigzag(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """Return (signed value, position after it) of a zigzag number of at most 64 bits.

    Raises IndexError if the buffer ends first, ValueError if the number is longer.
    """
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        if shift == 63 and byte > 1:
            raise ValueError("varlong is longer than 64 bits")
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7


def append_unsigned(target: bytearray, value: int) -> None:
    """Append `value`, which is not negative."""
    assert value >= 0
    while value > 0x7F:
        target.append(value & 0x7F | 0x80)
        value >>= 7
    target.append(value)


def append_zigzag(target: bytearray, value: int) -> None:
    """Append the signed `value` of at most 64 bits."""
    assert -(1 << 63) <= value < 1 << 63
    append_unsigned(target, (value << 1) ^ (value >> 63))
