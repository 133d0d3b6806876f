"""Values that have the public hash of others: its sums are linear in words that can be inverted.

As somebody would forge them who may write the table, but not the topic.
"""

import struct

M64 = (1 << 64) - 1
_MULTIPLIER = 0xD6E8FEB86659FD93
_INVERSE = pow(_MULTIPLIER, -1, 1 << 64)
_GOLDEN = 0x9E3779B97F4A7C15


def _mix(x: int, multiplier: int = _MULTIPLIER) -> int:
    x ^= x >> 32
    x = x * multiplier & M64
    return x ^ x >> 32


def _keys(i: int) -> tuple[int, int]:
    first, second = ((2 * i + n) * _GOLDEN & M64 for n in (1, 2))
    return _mix(_mix(first)), _mix(_mix(second)) | 1


def forged(value: bytes, changed: bytes) -> bytes:
    """`changed`, with two of its words chosen so that it has the sums of `value`.

    They are as long, and differ in the first word only; the two words are among the others.
    """
    words = list(struct.unpack(f"<{len(value) // 8}Q", value))
    first = struct.unpack("<Q", changed[:8])[0]
    (a, b), count = _keys(0), len(words)
    step = _mix(first ^ a) - _mix(words[0] ^ a)
    for i in range(1, count):
        for j in range(i + 1, count):
            (a_i, b_i), (a_j, b_j) = _keys(i), _keys(j)
            # x + y = -step and x B(i) + y B(j) = -step B(0), modulo 2^64.
            factor, wanted = b_i - b_j, -step * (b - b_j)
            twos = (factor & -factor).bit_length() - 1
            if wanted % (1 << twos):
                continue
            modulus = 1 << (64 - twos)
            x = (wanted >> twos) * pow(factor >> twos, -1, modulus) % modulus
            y = -step - x
            for at, key, more in ((i, a_i, x), (j, a_j, y)):
                words[at] = _mix(_mix(words[at] ^ key) + more & M64, _INVERSE) ^ key
            return struct.pack(f"<{count}Q", first, *words[1:])
    raise AssertionError("no two words of this length serve")
