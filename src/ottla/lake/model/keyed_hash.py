"""A hash of byte strings under a secret key: SipHash-2-4 with 128 bits, on whole columns.

`verify` uses it to compare the rows of a table with those of the topic, under a new random key each
time. The hashes of `row_hash` have no key, so rows with equal sums can be constructed. With a key
that is drawn after the rows were written, two different sets of rows have equal sums with a
probability of about 2^-128 (docs/developers/adr/0006-row-hash.md).

The loops are in C where the build has compiled them (`_row_sums.c`), else numpy's, which take the
next word of all strings at a time.
"""

import numpy as np
import numpy.typing as npt

from ottla.lake.model.row_hash import Offsets, Words

try:
    from ottla.lake._row_sums import keyed as _keyed_in_c
except ImportError:
    _in_c = False
else:
    _in_c = True

KEY_BYTES = 16
# "somepseudorandomlygeneratedbytes", as four words.
_INITIAL = np.frombuffer(b"uespemosmodnarodarenegylsetybdet", "<u8").astype(np.uint64)
_FOR_128_BITS = np.uint64(0xEE)


def keyed_hashes(
    content: npt.NDArray[np.uint8], offsets: Offsets, key: bytes
) -> tuple[Words, Words]:
    """Return the halves of the hash of each string, `content[offsets[i]:offsets[i + 1]]`.

    `offsets` has one element more than there are strings and never falls.
    """
    words = np.frombuffer(key, "<u8", 2).astype(np.uint64)
    state = _INITIAL ^ np.concatenate([words, words])
    state[1] ^= _FOR_128_BITS
    count = len(offsets) - 1
    if _in_c:
        low, high = np.empty(count, np.uint64), np.empty(count, np.uint64)
        bounds = np.ascontiguousarray(offsets)
        _keyed_in_c(np.ascontiguousarray(content), bounds, state, low, high)
        return low, high
    return _in_numpy(content, offsets, state)


def _in_numpy(
    content: npt.NDArray[np.uint8], offsets: Offsets, state: Words
) -> tuple[Words, Words]:
    lengths = offsets[1:] - offsets[:-1]
    # Sort by length, longest first, so that the strings with a next word come first.
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = offsets[:-1][order], lengths[order]
    padded = np.concatenate([content, np.zeros(8, np.uint8)])
    view = np.ndarray((len(padded) - 7,), dtype="<u8", buffer=padded, strides=(1,))
    v = np.repeat(state[:, np.newaxis], len(lengths), axis=1)
    for place in range(int(lengths[0] >> 3) if len(lengths) else 0):
        count = int(np.searchsorted(-(lengths >> 3), -place, side="left"))
        _take(v[:, :count], view[starts[:count] + 8 * place].astype(np.uint64))
    rests = (lengths & 7).astype(np.uint64) * np.uint64(8)
    last = view[starts + (lengths & ~7)].astype(np.uint64)
    last &= (np.uint64(1) << rests) - np.uint64(1)
    _take(v, last | lengths.astype(np.uint64) << np.uint64(56))
    v[2] ^= _FOR_128_BITS
    _rounds(v, 4)
    halves = [np.bitwise_xor.reduce(v, axis=0)]
    v[1] ^= np.uint64(0xDD)
    _rounds(v, 4)
    halves.append(np.bitwise_xor.reduce(v, axis=0))
    low, high = np.empty_like(halves[0]), np.empty_like(halves[1])
    low[order], high[order] = halves
    return low, high


def _take(v: Words, words: Words) -> None:
    v[3] ^= words
    _rounds(v, 2)
    v[0] ^= words


def _rounds(v: Words, count: int) -> None:
    for _ in range(count):
        v[0] += v[1]
        v[2] += v[3]
        v[1] = _turned(v[1], 13) ^ v[0]
        v[3] = _turned(v[3], 16) ^ v[2]
        v[0] = _turned(v[0], 32) + v[3]
        v[2] += v[1]
        v[3] = _turned(v[3], 21) ^ v[0]
        v[1] = _turned(v[1], 17) ^ v[2]
        v[2] = _turned(v[2], 32)


def _turned(words: Words, bits: int) -> Words:
    return words << np.uint64(bits) | words >> np.uint64(64 - bits)
