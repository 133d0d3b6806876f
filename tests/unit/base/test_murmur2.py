"""Java's partitioner: the same key must reach the same partition from any client."""

import pytest

from ottla.base.murmur2 import murmur2, partition_of


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_hashes_are_those_of_the_java_client(key: bytes, signed: int) -> None:
    """Vectors of Apache Kafka's own tests of `Utils.murmur2`, run against its jar."""
    assert murmur2(key) == signed & 0xFFFFFFFF


def test_the_partition_is_the_hash_made_positive_by_its_low_31_bits() -> None:
    """Java masks the sign bit; it does not take the absolute value."""
    assert partition_of(b"foobar", 7) == (-790332482 & 0x7FFFFFFF) % 7 == 0
    assert partition_of(b"abc", 10) == 7
