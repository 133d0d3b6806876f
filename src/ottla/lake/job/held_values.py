"""Finds columns that a table format cannot hold, before a table or a file is created. Pure.

Delta has no time of day, and ignores case in names within a struct. Iceberg has no time of day in
milliseconds, and names each field by its whole path with dots.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ottla.base.errors import ErrorCode, OttlaError


def require_holdable(kind: str, columns: Any) -> None:
    """Raise OttlaError INVALID_REQUEST that names the Arrow column that `kind` cannot hold."""
    if kind == "parquet":
        return
    seen: dict[str | tuple[str, ...], str] = {}
    for column in columns:
        for path, found in _parts((column.name,), column.type):
            if pa.types.is_time32(found) or (kind == "delta" and pa.types.is_time64(found)):
                unit = "ms" if pa.types.is_time32(found) else "us"
                raise _refused(kind, column.name, f"no type time({unit})")
            name = ".".join(path)
            key = name if kind == "iceberg" else tuple(part.lower() for part in path)
            if key in seen:
                raise _refused(kind, column.name, f"a single field {name}, here of {seen[key]!r}")
            seen[key] = column.name


def _parts(path: tuple[str, ...], kind: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield a type and all types within it, with their paths."""
    yield path, kind
    if pa.types.is_struct(kind):
        for number in range(kind.num_fields):
            field = kind.field(number)
            yield from _parts((*path, field.name), field.type)
    elif pa.types.is_list(kind):
        yield from _parts((*path, "element"), kind.value_type)
    elif pa.types.is_map(kind):
        yield from _parts((*path, "key"), kind.key_type)
        yield from _parts((*path, "value"), kind.item_type)


def _refused(kind: str, column: str, has: str) -> OttlaError:
    return OttlaError(
        ErrorCode.INVALID_REQUEST,
        f"the column {column!r} has no place in a table of format {kind}, which has {has}: declare "
        "it otherwise, or load into a table of format parquet",
    )
