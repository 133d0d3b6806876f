"""How much of a disk stays free for what a broker must always be able to write.

See docs/developers/adr/0031-reserve-of-a-disk.md.
"""

_RESERVE_BYTES_MAX = 256 << 20
# Of a disk that is smaller than 2 GiB this share is reserved.
_SHARE = 8


def reserve_bytes(total_bytes: int) -> int:
    """The reserve of a disk of that size."""
    return min(_RESERVE_BYTES_MAX, total_bytes // _SHARE)
