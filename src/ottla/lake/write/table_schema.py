"""Chooses the typed columns of a load: from its declaration, the table's columns, or a sample.

table's columns → renames → columns that the declaration adds or widens → columns of a sample

If a declaration names no columns, they come from the schema of its format, or else from a sample of
the records to load. Fields that tasks find later are added in the same way, by `evolved`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.job.load_task import Rows, read_rows
from ottla.lake.model.decode_spec import Column, Decode, Side, decode_from, options_of
from ottla.lake.model.decode_spec import Format as DecodeFormat
from ottla.lake.model.layout import TypedSchema, columns_for, table_schema, typed_schema
from ottla.lake.model.manifest import SchemaChange, TableSchema
from ottla.lake.model.plan import Range
from ottla.lake.rows.debezium import envelope_columns, flattened_type
from ottla.lake.rows.decoder import fixed_reader
from ottla.lake.rows.evolution import NewField, evolved, merged, reconciled, renamed
from ottla.lake.rows.sorted_rows import RowSorter, RowSorting
from ottla.lake.source.access import Bootstrap
from ottla.lake.tables.formats import Format
from ottla.ledger.partition import RangeAccount


@dataclass(frozen=True, slots=True)
class LoadTyping:
    """How a load decodes records, and how it changes the table's columns."""

    sorting: RowSorting
    changes: tuple[SchemaChange, ...] = ()

    def table_schema(self) -> TableSchema | None:
        """Return the columns as a manifest stores them; None if nothing is decoded."""
        decode = self.sorting.decode
        if not decode.sides():
            return None
        return table_schema(self.sorting.schema, options_of(decode))

    def with_news(self, news: Sequence[tuple[int, NewField, int]]) -> "LoadTyping":
        """Return the typing with the fields that tasks found: (partition, field, offset)."""
        offsets: dict[tuple[Side, tuple[str, ...]], dict[int, int]] = {}
        fields: dict[tuple[Side, tuple[str, ...]], NewField] = {}
        # Sorted by record, so that the result does not depend on which task finished first.
        for partition, new, offset in sorted(news, key=lambda one: (one[0], one[2])):
            key = (new.side, new.path)
            first = offsets.setdefault(key, {})
            first[partition] = min(offset, first.get(partition, offset))
            before = fields.get(key)
            kind = merged(before.type, new.type) if before else new.type
            fields[key] = replace(new, type=kind)
        schema, said = evolved(
            self.sorting.schema,
            list(fields.values()),
            envelopes=_envelopes(self.sorting.decode),
        )
        changes = [
            SchemaChange(what, first) for what, first in zip(said, offsets.values(), strict=True)
        ]
        return replace(
            self,
            sorting=replace(self.sorting, schema=schema),
            changes=(*self.changes, *changes),
        )


def load_typing(
    decode: Decode | None,
    before: TableSchema | None,
    *,
    dead_timestamps: bool,
    starts: Mapping[int, int],
    ranges: Sequence[Range],
    bootstrap: Bootstrap,
) -> LoadTyping | None:
    """Return how a load decodes; None if it loads only raw columns.

    Without a declaration (`decode`) a table is decoded as in its last load. Raises OttlaError if
    the declaration does not fit the table's columns.
    """
    if decode is None and before is not None:
        decode = decode_from(before.decode)
    if decode is None or not decode.sides():
        if not dead_timestamps:
            return None
        return LoadTyping(RowSorting(dead_timestamps=True))
    if before is None:
        typing = LoadTyping(RowSorting(decode, declared_schema(decode), dead_timestamps))
        return _sampled(typing, ranges, bootstrap)
    known = typed_schema(before)
    schema, said = renamed(known, decode.rules.rename)
    schema, more = reconciled(schema, declared_schema(decode))
    if schema != known:
        schema = replace(schema, number=known.number + 1)
    changes = tuple(SchemaChange(what, dict(starts)) for what in (*said, *more))
    return LoadTyping(RowSorting(decode, schema, dead_timestamps), changes)


def require_readable(decode: Decode | None, wanted: Format | None) -> None:
    """Raise an error for a schema that cannot be read, or columns that format `wanted` cannot hold.

    It is called before a table is created. Raises WrongWords or OttlaError.
    """
    if decode is not None:
        require_holdable(wanted or "parquet", declared_schema(decode).fields)


def declared_schema(decode: Decode) -> TypedSchema:
    """Return the columns that a declaration names, or that its schema implies."""
    schema = TypedSchema()
    taken = {one.name.lower() for _, how in decode.sides() for one in how.columns or ()}
    for side, how in decode.sides():
        schema = schema.with_columns(side, _declared(side, how, taken))
    return schema


def _declared(side: Side, how: DecodeFormat, taken: set[str]) -> tuple[Column, ...]:
    if how.columns is not None:
        is_envelope = how.debezium and side == "value"
        return envelope_columns(how.columns) if is_envelope else how.columns
    reader = fixed_reader(how, ())
    kind = reader.type if reader is not None else None
    if how.debezium:
        kind = flattened_type(kind, side)
    return () if kind is None else columns_for(kind, side, taken)


def _sampled(typing: LoadTyping, ranges: Sequence[Range], bootstrap: Bootstrap) -> LoadTyping:
    """Return the typing with the columns of a sample. They are not recorded as schema changes."""
    decode = typing.sorting.decode
    # Ignore bad records here: the tasks will read them again.
    sorting = replace(typing.sorting, decode=replace(decode, on_bad_record="null"))
    sorter = RowSorter(sorting)
    for wanted in sample_ranges(ranges, decode.sample):
        for batch, bad_times in sample_rows(wanted, bootstrap):
            sorter.sort(batch, bad_times)
    found, _ = evolved(
        typing.sorting.schema,
        [new for new, _ in sorter.news.values()],
        envelopes=_envelopes(decode),
    )
    return replace(typing, sorting=replace(typing.sorting, schema=replace(found, number=1)))


def sample_rows(wanted: Range, bootstrap: Bootstrap) -> Rows:
    """Yield the rows of a range as `read_rows` does, without batches that cannot be read."""
    account = RangeAccount(wanted.partition, wanted.start, wanted.end, True)
    return read_rows(wanted, bootstrap, account, skip_unreadable=True, null_bad_timestamps=True)


def sample_ranges(ranges: Sequence[Range], count: int) -> list[Range]:
    """Return the last offsets of each partition, about `count` offsets in all."""
    last: dict[int, Range] = {}
    for one in ranges:
        before = last.get(one.partition)
        last[one.partition] = one if before is None else replace(one, start=before.start)
    each = max(1, count // max(1, len(last)))
    return [replace(one, start=max(one.start, one.end - each)) for one in last.values()]


def _envelopes(decode: Decode) -> frozenset[Side]:
    return frozenset(side for side, how in decode.sides() if how.debezium and side == "value")


def require_holdable(kind: str, columns: Any) -> None:
    """Raise OttlaError INVALID_REQUEST if a table of format `kind` cannot hold an Arrow column.

    Delta has no time of day, and ignores case in names within a struct. Iceberg has no time of day
    in milliseconds, and joins the path of each field with dots. So two fields may get one name.
    """
    if kind == "parquet":
        return
    seen: dict[str | tuple[str, ...], str] = {}
    for column in columns:
        for path, found in _types_in((column.name,), column.type):
            if pa.types.is_time32(found) or (kind == "delta" and pa.types.is_time64(found)):
                unit = "ms" if pa.types.is_time32(found) else "us"
                raise _not_held(kind, column.name, f"no type time({unit})")
            name = ".".join(path)
            key = name if kind == "iceberg" else tuple(part.lower() for part in path)
            if key in seen:
                raise _not_held(kind, column.name, f"a single field {name}, here of {seen[key]!r}")
            seen[key] = column.name


def _types_in(path: tuple[str, ...], kind: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield a type and all types within it, with their paths."""
    yield path, kind
    if pa.types.is_struct(kind):
        for number in range(kind.num_fields):
            field = kind.field(number)
            yield from _types_in((*path, field.name), field.type)
    elif pa.types.is_list(kind):
        yield from _types_in((*path, "element"), kind.value_type)
    elif pa.types.is_map(kind):
        yield from _types_in((*path, "key"), kind.key_type)
        yield from _types_in((*path, "value"), kind.item_type)


def _not_held(kind: str, column: str, has: str) -> OttlaError:
    return OttlaError(
        ErrorCode.INVALID_REQUEST,
        f"the column {column!r} has no place in a table of format {kind}, which has {has}: declare "
        "it otherwise, or load into a table of format parquet",
    )
