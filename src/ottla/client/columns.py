"""Many records at once: columns of keys and values, cut into batches without a loop per record."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import add
from typing import Protocol, runtime_checkable

from ottla.base.errors import ErrorCode
from ottla.client.accumulator import as_bytes
from ottla.client.errors import ClientError
from ottla.client.queues import RECORD_OVERHEAD


@runtime_checkable
class ArrowColumn(Protocol):
    """What this module needs of a pyarrow Array or ChunkedArray."""

    def to_pylist(self) -> list[object]: ...


Column = Sequence[bytes | str | None] | ArrowColumn


@dataclass(slots=True)
class Rows:
    """Records as parallel lists; `size` is their bytes in a batch, near enough.

    `keys` is empty where none has a key.
    """

    values: list[bytes | None]
    keys: list[bytes | None]
    timestamps: list[int]
    size: int = 0

    def take(self, chosen: list[int]) -> "Rows":
        """The rows of those numbers."""
        return Rows(
            [self.values[row] for row in chosen],
            [self.keys[row] for row in chosen] if self.keys else [],
            [self.timestamps[row] for row in chosen],
        )


def rows(values: Column, keys: Column | None, timestamps_ms: list[int] | None, now_ms: int) -> Rows:
    """Columns as checked lists of bytes. Raises ClientError where they differ in length."""
    value_list = _bytes_list(values)
    count = len(value_list)
    key_list = [] if keys is None else _bytes_list(keys)
    times = [now_ms] * count if timestamps_ms is None else timestamps_ms
    if len(times) != count or (keys is not None and len(key_list) != count):
        raise ClientError(
            ErrorCode.INVALID_REQUEST,
            f"{count} values, {len(key_list)} keys and {len(times)} timestamps do not belong "
            "together; give columns of one length",
        )
    return Rows(value_list, key_list, times)


def _bytes_list(column: Column) -> list[bytes | None]:
    plain = column.to_pylist() if isinstance(column, ArrowColumn) else list(column)
    if set(map(type, plain)) <= {bytes, type(None)}:
        return plain  # type: ignore[return-value]  # The line above is the proof.
    return [as_bytes(value) for value in plain]


def chunks(every: Rows, limit_bytes: int) -> Iterator[Rows]:
    """Cut rows, in order, into pieces of at most `limit_bytes` (a larger record goes alone)."""
    ends = _ends(every)
    if not isinstance(ends, list):
        # All of one size: cut by numbers.
        count = max(1, limit_bytes // ends)
        for start in range(0, len(every.values), count):
            part = every.values[start : start + count]
            keys, times = every.keys[start : start + count], every.timestamps[start : start + count]
            yield Rows(part, keys, times, len(part) * ends)
        return
    start = done = 0
    while start < len(ends):
        stop = max(start + 1, bisect_left(ends, done + limit_bytes + 1, start))
        yield Rows(
            every.values[start:stop],
            every.keys[start:stop],
            every.timestamps[start:stop],
            ends[stop - 1] - done,
        )
        start, done = stop, ends[stop - 1]


# Hot: no Python call per record.
def _ends(every: Rows) -> list[int] | int:
    """Where each record ends, in bytes, if all went into one batch; or the size they all have."""
    sizes = list(map(len, _without_nulls(every.values)))
    if every.keys:
        sizes = list(map(add, sizes, map(len, _without_nulls(every.keys))))
    if sizes and min(sizes) == max(sizes):
        return RECORD_OVERHEAD + sizes[0]
    return list(accumulate(map(RECORD_OVERHEAD.__add__, sizes)))


def _without_nulls(column: list[bytes | None]) -> list[bytes]:
    if None in column:
        return [value or b"" for value in column]
    return column  # type: ignore[return-value]  # The line above is the proof.
