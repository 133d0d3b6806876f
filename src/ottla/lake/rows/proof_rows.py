"""Checks typed columns: decodes keys and values again, and compares the result.

If the file keeps keys and values, these are decoded; their hash proves that they are the topic's.
Otherwise the records that the topic still has are decoded.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from ottla.lake.model.decode_spec import decode_from
from ottla.lake.model.layout import ROW_HASH, typed_schema
from ottla.lake.model.manifest import TableSchema
from ottla.lake.model.schema import ROW_SCHEMA
from ottla.lake.rows.decoder import Decoder
from ottla.lake.rows.registry import schemas_of

_NAMED_MAX = 10
_BESIDE_HASH = ("timestamp", "timestamp_type")
# `valid_from` and `valid_to` are columns of a history, which another check compares.
_NOT_TYPED = frozenset({ROW_HASH.name, *ROW_SCHEMA.names, "valid_from", "valid_to"})


class TypedCheck:
    """Checks the typed columns of rows that were written with one schema of the table."""

    def __init__(self, schema: TableSchema) -> None:
        decode = decode_from(schema.decode)
        self._schema = typed_schema(schema)
        self._decoder = Decoder(decode, self._schema, schemas_of(decode))
        self.keeps_raw = decode.keep_raw
        self.compared = 0  # The number of rows that were compared so far.

    def of_own_rows(self, batches: Iterable[pa.RecordBatch]) -> list[str]:
        """Return problems in rows of a file that keeps keys and values."""
        found: dict[str, list[int]] = {}
        for batch in batches:
            decoded = self._decoder.decode(batch.select(ROW_SCHEMA.names)).columns
            offsets = batch.column("offset").to_numpy()
            self._compare(decoded, batch, offsets, found)
        return _named(found)

    def of_topic(
        self, topic: Iterable[pa.RecordBatch], stored: Iterable[pa.RecordBatch]
    ) -> list[str]:
        """Return problems in rows of a file, compared with the topic's rows at the same offsets.

        Both sides are in order of offset. Offsets that only one side has are ignored.
        """
        found: dict[str, list[int]] = {}
        for fresh, kept in _at_same_offsets(topic, stored):
            decoded = self._decoder.decode(fresh).columns
            offsets = kept.column("offset").to_numpy()
            self._compare(decoded, kept, offsets, found)
            # The stored hash is that of the original row, but these columns may have been changed.
            for name in _BESIDE_HASH:
                _compare_column(name, fresh.column(name), kept, offsets, found)
        return _named(found)

    def _compare(
        self,
        decoded: Sequence[pa.Array],
        stored: pa.RecordBatch,
        offsets: Sequence[int],
        found: dict[str, list[int]],
    ) -> None:
        self.compared += len(offsets)
        columns = dict(zip(self._schema.names, decoded, strict=True))
        # Columns that later loads added must be null. Only files of other programs have them.
        for name in stored.schema.names:
            if name in columns or name not in _NOT_TYPED:
                kind = stored.column(name).type
                column = columns.get(name, pa.nulls(len(offsets), kind))
                _compare_column(name, column, stored, offsets, found)


def _compare_column(
    name: str,
    column: pa.Array,
    stored: pa.RecordBatch,
    offsets: Sequence[int],
    found: dict[str, list[int]],
) -> None:
    other = stored.column(name)
    # A later load may have widened the column before another program wrote the file.
    column = column if column.type == other.type else column.cast(other.type)
    if column.equals(other):
        return
    pairs = zip(offsets, column.to_pylist(), other.to_pylist(), strict=True)
    # Compare as text, because NaN is not equal to itself.
    wrong = [int(offset) for offset, one, two in pairs if repr(one) != repr(two)]
    if wrong:
        found.setdefault(name, []).extend(wrong)


def _at_same_offsets(
    topic: Iterable[pa.RecordBatch], stored: Iterable[pa.RecordBatch]
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Yield pairs of batches with the rows at offsets that both sides have."""
    fresh_batches, kept_batches = iter(topic), iter(stored)
    fresh, kept = next(fresh_batches, None), next(kept_batches, None)
    while fresh is not None and kept is not None:
        ours, theirs = (one.column("offset").to_numpy() for one in (fresh, kept))
        if len(ours) and len(theirs):
            _, left, right = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
            if len(left):
                yield fresh.take(pa.array(left)), kept.take(pa.array(right))
        if len(ours) and (not len(theirs) or theirs[-1] <= ours[-1]):
            kept = next(kept_batches, None)
        else:
            fresh = next(fresh_batches, None)


def _named(found: dict[str, list[int]]) -> list[str]:
    return [
        f"its column {name} is not what the records decode to at "
        f"{', '.join(map(str, offsets[:_NAMED_MAX]))}"
        f"{f' and {len(offsets) - _NAMED_MAX} more offsets' if len(offsets) > _NAMED_MAX else ''}"
        for name, offsets in found.items()
    ]
