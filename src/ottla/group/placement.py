"""Which partition of `__consumer_offsets` holds a group."""


def partition_of(group_id: str, partition_count: int) -> int:
    """Kafka's rule: Java's hash of the group id, without its sign, modulo the partitions."""
    return (java_string_hash(group_id) & 0x7FFFFFFF) % partition_count


def java_string_hash(text: str) -> int:
    """`String.hashCode`: base 31 over UTF-16 units, as unsigned 32 bits."""
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        value = (value * 31 + (high << 8 | low)) & 0xFFFFFFFF
    return value
