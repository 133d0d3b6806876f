"""A hash of a set of rows that does not depend on their order or on how they are split.

The hash of a set is the sum, modulo 2^128, of the hashes of its rows; so hashes of files add
up to the hash of a load, and a row lost, doubled, moved to another partition or offset, or
changed in one bit shows. It guards against accidents, not against an adversary.

**Row hash 1.** All arithmetic is on unsigned 64-bit words, modulo 2^64.

- `mix(x)`: x ^= x >> 32; x *= 0xD6E8FEB86659FD93; x ^= x >> 32.
- Word keys: `A(i) = mix(mix((2 i + 1) * 0x9E3779B97F4A7C15))`,
  `B(i) = mix(mix((2 i + 2) * 0x9E3779B97F4A7C15)) | 1`, for i = 0 … 4095, repeating beyond.
- Bytes are cut into little-endian words w(0) … w(n-1), the last filled up with zeros, and
  give two sums: `s = sum of m(i)` and `t = sum of m(i) * B(i)`, where
  `m(i) = mix(w(i) ^ (A(i) + i // 4096))`.
- A row's canonical form is a list of words: partition, offset, timestamp in milliseconds
  (2^63 for null), timestamp type (0 create, 1 log append), then of key, of value and of headers
  each length (2^64 - 1 for null), s, t. Headers are the bytes: for each header its name's
  length (u32, little-endian), its name in UTF-8 (as in the column: `header_names`), its value's
  length (u32; 2^32 - 1 for null), its value. The number of headers is implied.
- `u = 0, v = 0`; for each word x, the j-th: `u = mix(u ^ x) + A(j)`, `v = (v + u) * B(j)`.
  The row's hash is `mix(u) + 2^64 * mix(v)`.

No Python object for each row: the loops are in C where the build has compiled them
(`_row_sums.c`), else numpy's.
"""

import numpy as np
import numpy.typing as npt

try:
    from ottla.lake._row_sums import bytes_sums as _bytes_sums_in_c
    from ottla.lake._row_sums import mix_in as _mix_in
except ImportError:
    _in_c = False
else:
    _in_c = True

Words = npt.NDArray[np.uint64]
Offsets = npt.NDArray[np.int64]

_MULTIPLIER = np.uint64(0xD6E8FEB86659FD93)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_KEYS = 4096
# Small enough for the words and their halves to stay in a core's cache.
_WORDS_AT_ONCE = 1 << 15
_LOW = np.uint64(0xFFFFFFFF)
NULL_LENGTH = np.uint64(0xFFFFFFFFFFFFFFFF)

MODULUS = 1 << 128


def _mixed_in_place(words: Words) -> Words:
    words ^= words >> _HALF
    words *= _MULTIPLIER
    words ^= words >> _HALF
    return words


def _mixed(words: Words) -> Words:
    return _mixed_in_place(words.copy())


_INDEX = np.arange(_KEYS, dtype=np.uint64) * np.uint64(2)
_A = _mixed(_mixed((_INDEX + np.uint64(1)) * _GOLDEN))
_B = _mixed(_mixed((_INDEX + np.uint64(2)) * _GOLDEN)) | np.uint64(1)


def bytes_sums(content: npt.NDArray[np.uint8], offsets: Offsets) -> tuple[Words, Words]:
    """Return `s` and `t` of each byte string: string i is `content[offsets[i]:offsets[i + 1]]`.

    `offsets` has one element more than there are strings and never falls.
    """
    lengths = offsets[1:] - offsets[:-1]
    if len(lengths) == 0 or offsets[-1] == offsets[0]:
        return np.zeros(len(lengths), np.uint64), np.zeros(len(lengths), np.uint64)
    if _in_c:
        sums, weighted = np.empty(len(lengths), np.uint64), np.empty(len(lengths), np.uint64)
        bounds = np.ascontiguousarray(offsets)
        _bytes_sums_in_c(np.ascontiguousarray(content), bounds, _A, _B, sums, weighted)
        return sums, weighted
    # Words are read at any byte; eight arbitrary bytes after the end keep the last read inside.
    first, after = int(offsets[0]), int(offsets[-1])
    padded = content[first : after + 8]
    if len(padded) < after + 8 - first:
        padded = np.concatenate((content[first:after], np.zeros(8, np.uint8)))
    starts = offsets[:-1] - offsets[0]
    longest = int(lengths.max())
    if longest == int(lengths.min()):
        return _equal_length_sums(padded, len(lengths), longest)
    return _ragged_sums(padded, starts, lengths)


def _equal_length_sums(
    padded: npt.NDArray[np.uint8], count: int, length: int
) -> tuple[Words, Words]:
    words_per_string = (length + 7) >> 3
    index = np.arange(words_per_string)
    # Transposed, with one row for each word position: sums then run along whole rows.
    key_a = (_A[index % _KEYS] + (index // _KEYS).astype(np.uint64))[:, np.newaxis]
    key_b = _B[index % _KEYS][:, np.newaxis]
    rest = length & 7
    sums, weighted = np.empty(count, np.uint64), np.empty(count, np.uint64)
    step = max(1, _WORDS_AT_ONCE // words_per_string)
    for first in range(0, count, step):
        strings = slice(first, first + step)
        words = np.ndarray(
            (words_per_string, min(step, count - first)),
            dtype="<u8",
            buffer=padded,
            offset=first * length,
            strides=(8, length),
        ).astype(np.uint64, order="C")
        if rest:
            words[-1] &= np.uint64((1 << (8 * rest)) - 1)
        words ^= key_a
        _mixed_in_place(words)
        words.sum(axis=0, dtype=np.uint64, out=sums[strings])
        words *= key_b
        words.sum(axis=0, dtype=np.uint64, out=weighted[strings])
    return sums, weighted


def _ragged_sums(
    padded: npt.NDArray[np.uint8], starts: Offsets, lengths: Offsets
) -> tuple[Words, Words]:
    counts = (lengths + 7) >> 3
    firsts = np.cumsum(counts) - counts
    index = np.arange(int(counts.sum())) - np.repeat(firsts, counts)
    view = np.ndarray((len(padded) - 7,), dtype="<u8", buffer=padded, strides=(1,))
    words = view[np.repeat(starts, counts) + (index << 3)].astype(np.uint64)
    rests = lengths & 7
    cut = rests > 0
    lasts = (firsts + counts - 1)[cut]
    words[lasts] &= (np.uint64(1) << (rests[cut].astype(np.uint64) << np.uint64(3))) - np.uint64(1)
    key_index = index % _KEYS
    words ^= _A[key_index] + (index // _KEYS).astype(np.uint64)
    _mixed_in_place(words)
    filled = counts > 0
    sums = np.zeros(len(lengths), np.uint64)
    weighted = np.zeros(len(lengths), np.uint64)
    sums[filled] = np.add.reduceat(words, firsts[filled])
    words *= _B[key_index]
    weighted[filled] = np.add.reduceat(words, firsts[filled])
    return sums, weighted


def rows_hash(canonical: list[Words]) -> int:
    """Return the hash of a set of rows, 0 … 2^128 - 1, from the words of their canonical form.

    `canonical[j][i]` is the j-th word of row i; all arrays are of one length.
    """
    return hashes_sum(*row_hashes(canonical))


def hashes_sum(low: Words, high: Words) -> int:
    """Return the hash of a set of rows, from the halves of each row's hash."""
    return (_exact_sum(low) + (_exact_sum(high) << 64)) % MODULUS


def row_hashes(canonical: list[Words]) -> tuple[Words, Words]:
    """Return the low and the high half of each row's hash."""
    rows = len(canonical[0])
    low = np.zeros(rows, np.uint64)
    high = np.zeros(rows, np.uint64)
    for position, word in enumerate(canonical):
        if _in_c:
            words = np.ascontiguousarray(word)
            _mix_in(words, int(_A[position]), int(_B[position]), low, high)
        else:
            low ^= word
            _mixed_in_place(low)
            low += _A[position]
            high += low
            high *= _B[position]
    return _mixed_in_place(low), _mixed_in_place(high)


def _exact_sum(words: Words) -> int:
    """Return the sum without overflow; exact for fewer than 2^32 rows."""
    return int((words & _LOW).sum(dtype=np.uint64)) + (
        int((words >> _HALF).sum(dtype=np.uint64)) << 32
    )


def hash_text(value: int) -> str:
    """Return a hash as manifests and people write it: 32 hexadecimal digits."""
    return f"{value % MODULUS:032x}"
