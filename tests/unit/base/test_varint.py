"""Variable-length integers (Kafka documentation, "Varint encoding"; Protocol Buffers)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.varint import append_unsigned, append_zigzag, read_unsigned, read_zigzag


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (2**32 - 1, "ffffffff0f"),
    ],
)
def test_unsigned_has_its_documented_bytes(value: int, encoded: str) -> None:
    """Seven bits a byte, least significant first."""
    target = bytearray()
    append_unsigned(target, value)
    assert target.hex() == encoded
    assert read_unsigned(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (-2, "03"),
        (2**31 - 1, "feffffff0f"),
        (-(2**63), "ffffffffffffffffff01"),
        (2**63 - 1, "feffffffffffffffff01"),
    ],
)
def test_zigzag_has_its_documented_bytes(value: int, encoded: str) -> None:
    """The sign is the lowest bit, so that small negative numbers are short."""
    target = bytearray()
    append_zigzag(target, value)
    assert target.hex() == encoded
    assert read_zigzag(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=3))
def test_zigzag_reads_back_what_was_written_wherever_it_stands(value: int, before: bytes) -> None:
    """Position in is where it starts, position out is where it ends."""
    target = bytearray(before)
    append_zigzag(target, value)
    assert read_zigzag(memoryview(target), len(before)) == (value, len(target))


@pytest.mark.parametrize("encoded", ["ffffffff10", "8080808080", "ffffffffff01"])
def test_unsigned_beyond_32_bits_is_refused(encoded: str) -> None:
    """A fifth byte holds four bits and is the last."""
    with pytest.raises(ValueError, match="32 bits"):
        read_unsigned(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("encoded", ["ffffffffffffffffff02", "8080808080808080808001"])
def test_zigzag_beyond_64_bits_is_refused(encoded: str) -> None:
    """A tenth byte holds one bit and is the last."""
    with pytest.raises(ValueError, match="64 bits"):
        read_zigzag(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("read", [read_unsigned, read_zigzag])
def test_a_number_that_ends_with_the_buffer_is_an_index_error(read) -> None:
    """Truncation is told apart from a number that is too long."""
    with pytest.raises(IndexError):
        read(b"\x80\x80", 0)
