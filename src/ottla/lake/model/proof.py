"""Hashes rows in Arrow columns, before they are written or after they are read.

The canonical form and the sum are those of `row_hash`. A load and its verification both use this
module, so their hashes differ only if the rows do. If both sets of rows are at hand, they are
compared under a key (`keyed_row_hashes`).
"""

from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import Any

import numpy as np
import pyarrow as pa

from ottla.lake.model.keyed_hash import KEY_BYTES, keyed_hashes
from ottla.lake.model.row_hash import (
    MODULUS,
    NULL_LENGTH,
    Offsets,
    Words,
    bytes_sums,
    hashes_sum,
    row_hashes,
    rows_hash,
)

_HEADER_LENGTH = Struct("<I")
_NULL_HEADER_LENGTH = 0xFFFFFFFF
# Stands for null: no time in milliseconds that fits the column has this value.
_NULL_TIME = np.uint64(1 << 63)


# A function that returns two words for each byte string, for `canonical_words`.
Sums = Callable[[Any, Offsets], tuple[Words, Words]]
# The size of a key for byte strings and a key for rows (`keyed_row_hashes`).
ROW_KEY_BYTES = 2 * KEY_BYTES

# How many rows are hashed at once: few enough for the words to stay in the processor's cache.
_ROWS_AT_ONCE = 8192


def batch_hash(rows: pa.RecordBatch | pa.Table) -> int:
    """Return the hash of rows that have the columns of `schema.ROW_SCHEMA` (topic apart)."""
    batches = rows.to_batches() if isinstance(rows, pa.Table) else [rows]
    total = 0
    for batch in batches:
        for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
            total += rows_hash(canonical_words(batch.slice(start, _ROWS_AT_ONCE)))
    return total % MODULUS


def stored_hashes(batch: pa.RecordBatch) -> tuple[Words, Words]:
    """Return both halves of each row's hash in a file: the stored column, or computed."""
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

    Used to compare two sets of rows at once; never stored.
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
    """Return the hashes of raw rows as the column `row_hash`, which a file may have instead."""
    low, high = row_hashes(canonical_words(batch))
    content = np.column_stack([low, high]).astype("<u8").tobytes()
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(16), batch.num_rows, [None, pa.py_buffer(content)]
    )


def canonical_words(batch: pa.RecordBatch, sums: Sums = bytes_sums) -> list[Words]:
    """Return the canonical form of each row: an array of words for each word of the form."""
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
    values: Words = column.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
    return values


def _milliseconds(column: Any) -> Words:
    micros = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    if micros.null_count:
        null = micros.is_null().to_numpy(zero_copy_only=False)
        known: Words = (micros.fill_null(0).to_numpy() // 1000).view(np.uint64)
        return np.where(null, _NULL_TIME, known)
    values: Words = (micros.to_numpy(zero_copy_only=False) // 1000).view(np.uint64)
    return values


def _byte_words(column: Any, sums_of: Sums) -> tuple[Words, Words, Words]:
    """Return length and two sums of each byte string of a binary column."""
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
        null = column.is_null().to_numpy(zero_copy_only=False)
        lengths = np.where(null, NULL_LENGTH, lengths)
        # The bytes of a null are undefined and must not be counted.
        sums, weighted = np.where(null, 0, sums), np.where(null, 0, weighted)
    return lengths.astype(np.uint64), sums.astype(np.uint64), weighted.astype(np.uint64)


def _header_words(column: Any, sums_of: Sums) -> tuple[Words, Words, Words]:
    """Return length and two sums of each row's headers as one byte string; null is empty."""
    if len(column.flatten()) == 0:
        zeros = np.zeros(len(column), np.uint64)
        return zeros, zeros, zeros
    return _byte_words(pa.array(header_texts(column), pa.binary()), sums_of)


def header_texts(column: Any) -> list[bytes]:
    """Return the headers of each row as one byte string; no headers and null are empty."""
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
