"""Java's murmur2 partitioner hash, 32 bits, with the client's seed."""

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(key: bytes) -> int:
    """Return the hash of `key`, unsigned. The algorithm is Austin Appleby's, public domain."""
    length = len(key)
    state = _SEED ^ length
    whole = length & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(key[position : position + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        state = (state * _MULTIPLIER & _MASK) ^ word
    if length != whole:
        state = (state ^ int.from_bytes(key[whole:], "little")) * _MULTIPLIER & _MASK
    state = (state ^ state >> 13) * _MULTIPLIER & _MASK
    return state ^ state >> 15


def partition_of(key: bytes, partition_count: int) -> int:
    """Return the partition that Java's default partitioner gives `key` (its hash made positive)."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count
