"""Which partition holds a group: equal to Kafka's, or clients would ask the wrong broker."""

import pytest

from ottla.group.records.stored import java_string_hash, partition_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99_162_322),
        # Published in Java's documentation of hashes that are negative as 32 bits.
        ("polygenelubricants", 0x80000000),
        # Outside the basic plane a character is two UTF-16 units.
        ("\N{GRINNING FACE}", 0xD83D * 31 + 0xDE00),
    ],
)
def test_hash_is_javas(text: str, expected: int) -> None:
    """`String.hashCode`."""
    assert java_string_hash(text) == expected


def test_negative_hash_is_made_positive_by_its_sign_bit() -> None:
    """Not by its absolute value, which the smallest integer does not have."""
    assert partition_of("polygenelubricants", 50) == 0
    assert partition_of("hello", 50) == 22
