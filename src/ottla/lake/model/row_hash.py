"""A hash of a set of rows that does not depend on their order or on how they are split.

The hash of a set is the sum, modulo 2^128, of the hashes of its rows, so the hashes of files
add up to the hash of a load. A row that is lost, doubled, moved to another partition or offset, or
changed in one bit changes the hash. It guards against accidents, not against an adversary.

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
  length (u32, little-endian), its name in UTF-8 (as in the column: `header_name_text`), its
  value's length (u32; 2^32 - 1 for null), its value. The number of headers is implied.
- `u = 0, v = 0`; for each word x, the j-th: `u = mix(u ^ x) + A(j)`, `v = (v + u) * B(j)`.
  The row's hash is `mix(u) + 2^64 * mix(v)`.

The loops are in C if the build has compiled them (`_row_sums.c`), otherwise in numpy. No Python
object is made for each row.
"""

from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ottla.lake.model.schema import byte_strings

try:
    from ottla.lake._row_sums import bytes_sums as _bytes_sums_in_c
    from ottla.lake._row_sums import keyed as _keyed_in_c
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
    """Return `s` and `t` of each byte string. String i is `content[offsets[i]:offsets[i + 1]]`.

    `offsets` is in ascending order, and has one element more than there are strings.
    """
    lengths = offsets[1:] - offsets[:-1]
    if len(lengths) == 0 or offsets[-1] == offsets[0]:
        return np.zeros(len(lengths), np.uint64), np.zeros(len(lengths), np.uint64)
    if _in_c:
        sums, weighted = np.empty(len(lengths), np.uint64), np.empty(len(lengths), np.uint64)
        bounds = np.ascontiguousarray(offsets)
        _bytes_sums_in_c(np.ascontiguousarray(content), bounds, _A, _B, sums, weighted)
        return sums, weighted
    # Eight bytes are read at a time, so eight arbitrary bytes must follow the end.
    first, after = int(offsets[0]), int(offsets[-1])
    padded = content[first : after + 8]
    if len(padded) < after + 8 - first:
        padded = np.concatenate((content[first:after], np.zeros(8, np.uint8)))
    return _sums_in_numpy(padded, offsets[:-1] - offsets[0], lengths)


def _sums_in_numpy(
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

    `canonical[j][i]` is the j-th word of row i. All arrays have the same length.
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
    """Return a hash as text of 32 hexadecimal digits."""
    return f"{value % MODULUS:032x}"


KEY_BYTES = 16
# "somepseudorandomlygeneratedbytes", as four words.
_INITIAL = np.frombuffer(b"uespemosmodnarodarenegylsetybdet", "<u8").astype(np.uint64)
_FOR_128_BITS = np.uint64(0xEE)


def keyed_hashes(
    content: npt.NDArray[np.uint8], offsets: Offsets, key: bytes
) -> tuple[Words, Words]:
    """Return both halves of the keyed hash (SipHash) of each byte string.

    String i is `content[offsets[i]:offsets[i + 1]]`. `offsets` is in ascending order, and has one
    element more than there are strings.
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


_HEADER_LENGTH = Struct("<I")
_NULL_HEADER_LENGTH = 0xFFFFFFFF
# The word of a null timestamp. No timestamp that fits the column has this value.
_NULL_TIME = np.uint64(1 << 63)


# A function that returns two words for each byte string, for `canonical_words`.
Sums = Callable[[Any, Offsets], tuple[Words, Words]]
# `keyed_row_hashes` needs a key for byte strings and a key for rows.
ROW_KEY_BYTES = 2 * KEY_BYTES

# So few rows are hashed at once that their words stay in the processor's cache.
_ROWS_AT_ONCE = 8192


def batch_hash(rows: pa.RecordBatch | pa.Table) -> int:
    """Return the hash of rows with the columns of `schema.ROW_SCHEMA`. The topic is not hashed."""
    batches = rows.to_batches() if isinstance(rows, pa.Table) else [rows]
    total = 0
    for batch in batches:
        for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
            total += rows_hash(canonical_words(batch.slice(start, _ROWS_AT_ONCE)))
    return total % MODULUS


def stored_hashes(batch: pa.RecordBatch) -> tuple[Words, Words]:
    """Return both halves of the hash of each row in a file.

    They are read from the column `row_hash` if the file has it, otherwise computed.
    """
    if "row_hash" not in batch.schema.names:
        return row_hashes(canonical_words(batch))
    column = batch.column("row_hash")
    content = np.frombuffer(b"".join(column.to_pylist()), "<u8").reshape(-1, 2)
    return content[:, 0].copy(), content[:, 1].copy()


def stored_hash(batch: pa.RecordBatch) -> int:
    """Return the hash of the rows of a file."""
    if "row_hash" not in batch.schema.names:
        return batch_hash(batch)
    return hashes_sum(*stored_hashes(batch))


def keyed_row_hashes(batch: pa.RecordBatch, key: bytes) -> tuple[Words, Words]:
    """Return both halves of each raw row's hash under `key`, which has ROW_KEY_BYTES bytes.

    Such hashes compare two sets of rows at once, and are never stored.
    """
    of_strings, of_rows = key[:KEY_BYTES], key[KEY_BYTES:]
    words = canonical_words(batch, partial(keyed_hashes, key=of_strings))
    content = np.column_stack(words).astype("<u8")
    offsets = np.arange(batch.num_rows + 1, dtype=np.int64) * (8 * len(words))
    return keyed_hashes(content.reshape(-1).view(np.uint8), offsets, of_rows)


def keyed_hash(batch: pa.RecordBatch, key: bytes) -> int:
    """Return the hash of a set of raw rows under `key`."""
    return hashes_sum(*keyed_row_hashes(batch, key))


def hash_column(batch: pa.RecordBatch) -> Any:
    """Return the hashes of raw rows as the column `row_hash`, for files without keys and values."""
    low, high = row_hashes(canonical_words(batch))
    content = np.column_stack([low, high]).astype("<u8").tobytes()
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(16), batch.num_rows, [None, pa.py_buffer(content)]
    )


def canonical_words(batch: pa.RecordBatch, sums: Sums = bytes_sums) -> list[Words]:
    """Return the canonical form of rows, with one array for each word of the form."""
    return [
        _integers(batch.column("partition")),
        _integers(batch.column("offset")),
        _milliseconds(batch.column("timestamp")),
        _integers(batch.column("timestamp_type")),
        *_byte_words(batch.column("key"), sums),
        *_byte_words(batch.column("value"), sums),
        *_header_words(batch.column("headers"), sums),
    ]


def _integers(column: Any) -> Words:
    return _values(column).astype(np.int64).view(np.uint64)


# Arrow's own conversion to numpy imports pandas, as `pa.array` does.
def _values(column: Any) -> npt.NDArray[Any]:
    """Return the values of a column of integers; of nulls any value."""
    content = column.buffers()[1] or b""
    found = np.frombuffer(content, f"i{column.type.bit_width // 8}")
    return found[column.offset :][: len(column)]


def _nulls(column: Any) -> npt.NDArray[np.bool_]:
    """Return which values of a column that has nulls are null."""
    known = np.unpackbits(np.frombuffer(column.buffers()[0], np.uint8), bitorder="little")
    nulls: npt.NDArray[np.bool_] = known[column.offset :][: len(column)] == 0
    return nulls


def _milliseconds(column: Any) -> Words:
    micros = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    values: Words = (_values(micros) // 1000).view(np.uint64)
    return np.where(_nulls(micros), _NULL_TIME, values) if micros.null_count else values


def _byte_words(column: Any, sums_of: Sums) -> tuple[Words, Words, Words]:
    """Return the length and both sums of each byte string in a binary column."""
    if column.null_count == len(column):
        zeros = np.zeros(len(column), np.uint64)
        return np.full(len(column), NULL_LENGTH), zeros, zeros
    if pa.types.is_dictionary(column.type) or not pa.types.is_binary(column.type):
        column = column.cast(pa.binary())
    _, offset_buffer, content_buffer = column.buffers()
    bounds = np.frombuffer(offset_buffer, np.int32)[column.offset :][: len(column) + 1]
    content = np.frombuffer(content_buffer or b"", np.uint8)
    offsets = bounds.astype(np.int64)
    sums, weighted = sums_of(content, offsets)
    lengths = (offsets[1:] - offsets[:-1]).view(np.uint64)
    if column.null_count:
        null = _nulls(column)
        lengths = np.where(null, NULL_LENGTH, lengths)
        # The bytes of a null are undefined and must not be counted.
        sums, weighted = np.where(null, 0, sums), np.where(null, 0, weighted)
    return lengths.astype(np.uint64), sums.astype(np.uint64), weighted.astype(np.uint64)


def _header_words(column: Any, sums_of: Sums) -> tuple[Words, Words, Words]:
    """Return the length and both sums of each row's headers, as one byte string."""
    if len(column.flatten()) == 0:
        zeros = np.zeros(len(column), np.uint64)
        return zeros, zeros, zeros
    return _byte_words(byte_strings(header_texts(column)), sums_of)


def header_texts(column: Any) -> list[bytes]:
    """Return the headers of each row as one byte string, which is empty for null."""
    return [_header_bytes(headers) for headers in column.to_pylist()]


def _header_bytes(headers: list[dict[str, Any]] | None) -> bytes:
    parts = []
    for header in headers or ():
        name, value = header["key"].encode(), header["value"]
        parts += [_HEADER_LENGTH.pack(len(name)), name]
        if value is None:
            parts.append(_HEADER_LENGTH.pack(_NULL_HEADER_LENGTH))
        else:
            parts += [_HEADER_LENGTH.pack(len(value)), value]
    return b"".join(parts)
