"""Many records at once: columns of keys and values, checked without a loop per record."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ottla.base.errors import ErrorCode
from ottla.client.common.call_check import Mistake
from ottla.client.common.errors import ClientError
from ottla.client.producer.accumulator import as_bytes
from ottla.record.builder import are_bytes


@runtime_checkable
class ArrowColumn(Protocol):
    """The required interface of a pyarrow Array or ChunkedArray."""

    def to_pylist(self) -> list[object]: ...


Column = Sequence[bytes | str | None] | ArrowColumn


@dataclass(slots=True)
class Rows:
    """Records as parallel lists.

    `keys` is None if no record has a key, `timestamps` if all records have `now_ms`.
    """

    values: list[bytes | None]
    keys: list[bytes | None] | None
    timestamps: list[int] | None
    now_ms: int

    def take(self, chosen: list[int]) -> "Rows":
        """Return the rows with those numbers."""
        return Rows(
            [self.values[row] for row in chosen],
            None if self.keys is None else [self.keys[row] for row in chosen],
            None if self.timestamps is None else [self.timestamps[row] for row in chosen],
            self.now_ms,
        )


def rows(values: Column, keys: Column | None, timestamps_ms: list[int] | None, now_ms: int) -> Rows:
    """Return columns as checked lists of bytes. Raises ClientError if their lengths differ."""
    value_list = _bytes_list("values", values)
    count = len(value_list)
    key_list = None if keys is None else _bytes_list("keys", keys)
    times = None if timestamps_ms is None else list(timestamps_ms)
    key_count = count if key_list is None else len(key_list)
    time_count = count if times is None else len(times)
    if key_count != count or time_count != count:
        raise ClientError(
            ErrorCode.INVALID_REQUEST,
            f"{count} values, {key_count} keys and {time_count} timestamps do not belong "
            "together; give columns of one length",
        )
    return Rows(value_list, key_list, times, now_ms)


# A copy, as the caller may change its list while batches are cut from it.
def _bytes_list(name: str, column: Column) -> list[bytes | None]:
    if isinstance(column, str | bytes) or not isinstance(column, ArrowColumn | Iterable):
        raise Mistake(name, column, "a list of bytes, str or None, or an Arrow column").error()
    plain = column.to_pylist() if isinstance(column, ArrowColumn) else list(column)
    if are_bytes(plain):
        return plain  # type: ignore[return-value]  # The line above is the proof.
    return [as_bytes(value) for value in plain]
