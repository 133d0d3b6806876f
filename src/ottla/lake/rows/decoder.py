"""Decodes raw rows to typed columns, and finds bad rows.

A record's key and value are decoded by their formats. A row that can't be read, or does not fit the
columns, is refused, with its stage, its error and its schema id. The policy (`on_bad_record`)
decides whether the load fails, the row becomes a dead letter, or its columns become null. A null
key or value has null in all of its columns, and is never an error.
"""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.base.errors import ErrorCode, OttlaError, WrongWords
from ottla.lake.model.decode_spec import Column, Decode, Format, SchemaRules, Side
from ottla.lake.model.layout import TypedSchema
from ottla.lake.model.types import Type, other_unit, plain, type_at
from ottla.lake.rows import debezium
from ottla.lake.rows.avro_values import AvroReader
from ottla.lake.rows.convert import Converter
from ottla.lake.rows.evolution import IGNORE, FieldRules, NewField, Path, merged
from ottla.lake.rows.protobuf_values import ProtobufReader
from ottla.lake.rows.registry import RegisteredSchemas
from ottla.lake.rows.value_reader import (
    BadValue,
    BytesReader,
    CsvReader,
    JsonReader,
    TextReader,
    ValueReader,
    message_indexes,
    shown,
    unframed,
)

# This many rows or bytes of values are decoded at once. Python objects take several times that.
_ROWS_AT_ONCE = 1 << 14
_BYTES_AT_ONCE = 8 << 20
# The types of at most this many schemas are remembered for new fields.
_SCHEMAS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A row that lacks some or all typed columns, and the reason."""

    row: int
    stage: str  # One of decode.key, decode.value and schema.
    error: str
    schema_id: int | None = None


@dataclass(frozen=True, slots=True)
class Decoded:
    """The result of decoding a batch. `columns` have all rows, in the order of the schema."""

    columns: Sequence[Any]
    refused: Sequence[RefusedRow] = ()
    # New fields that the rules allow in the schema. Rows with such fields are not refused.
    news: Sequence[NewField] = ()


@dataclass(slots=True)
class _Parsed:
    """The keys or the values of a chunk, one for each row, and their schema ids."""

    values: list[Any]
    refused: list[RefusedRow] = field(default_factory=list)
    schema_ids: dict[int, int] = field(default_factory=dict)


class Decoder:
    """Decodes batches into the columns of `schema`. `schemas` has the schemas of the registry."""

    def __init__(
        self, decode: Decode, schema: TypedSchema, schemas: RegisteredSchemas | None = None
    ) -> None:
        self.schema = schema
        self._sides = [
            _SideDecoder(side, one, schema.of(side), decode.rules, schemas)
            for side, one in decode.sides()
        ]

    def decode(self, batch: pa.RecordBatch) -> Decoded:
        """Decode rows that have the columns `key` and `value`.

        Bad rows are in `refused` of the result. Raises OttlaError only if no row can be decoded,
        for example if the registry does not answer.
        """
        parts: list[list[Any]] = []
        refused: list[RefusedRow] = []
        news: dict[tuple[Side, Path], NewField] = {}
        for start, size in _chunks(batch):
            columns: list[Any] = []
            for side in self._sides:
                content = batch.column(side.side).slice(start, size).to_pylist()
                columns += side.decode(content, start, refused, news)
            parts.append(columns)
        refused.sort(key=lambda one: one.row)
        if not parts:
            return Decoded([pa.array([], each.type) for each in self.schema.fields])
        joined = [pa.concat_arrays(column) for column in zip(*parts, strict=True)]
        return Decoded(joined, refused, list(news.values()))


class _SideDecoder:
    def __init__(
        self,
        side: Side,
        how: Format,
        columns: Sequence[Column],
        rules: SchemaRules,
        schemas: RegisteredSchemas | None,
    ) -> None:
        self.side = side
        self._how = how
        self._columns = columns
        self._schemas = schemas
        self._stage = f"decode.{side}"
        self._fixed = fixed_reader(how, columns)
        self._base64_decimals = how.debezium and how.kind == "json"
        self._known = frozenset(
            path[0] for one in columns for path in (one.source, *one.also) if path
        )
        self._whole = any(not one.source for one in columns)
        # The types in the schemas of the values, in which the type of a new field is looked up.
        self._types: dict[int, Type] = {}
        self._other_units: dict[int, str] = {}
        self._connect_schema: Any = None
        self._connect_unit = ""
        self._learn(self._fixed)
        derives = how.columns is None or rules != SchemaRules()
        if how.kind == "csv":
            rules = replace(rules, widen="reject")
        self._field_rules = FieldRules(rules, self._types) if derives else IGNORE

    def decode(
        self,
        content: Sequence[bytes | None],
        start: int,
        refused: list[RefusedRow],
        news: dict[tuple[Side, Path], NewField],
    ) -> list[Any]:
        """Decode a chunk whose first row is `start`, and return its columns.

        Bad rows are added to `refused`, new fields to `news`.
        """
        parsed = self._parse(content)
        converter = Converter(
            self._field_rules,
            texts=self._how.kind == "csv",
            base64_decimals=self._base64_decimals,
        )
        rows = range(len(content))
        if not self._whole:
            objects = self._objects(parsed, converter)
            converter.unknown(objects, self._known, (), rows)
        else:
            objects = parsed.values
        columns = [self._column(one, objects, converter, rows) for one in self._columns]
        self._require_values(columns, content, parsed, converter)
        found = converter.findings
        refused += [replace(one, row=start + one.row) for one in parsed.refused]
        refused += [
            RefusedRow(start + row, "schema", error, parsed.schema_ids.get(row))
            for row, error in found.errors.items()
        ]
        for path, (row, kind) in found.news.items():
            before = news.get((self.side, path))
            first = start + row if before is None else before.row
            kind = kind if before is None else merged(before.type, kind)
            news[self.side, path] = NewField(self.side, path, kind, first)
        return columns

    def _parse(self, content: Sequence[bytes | None]) -> _Parsed:
        parsed = _Parsed([])
        read = self._read if self._fixed is None or self._how.framed else self._fixed.read
        flatten = self._how.debezium
        for row, one in enumerate(content):
            value = None
            if one is not None:
                try:
                    value = read(one)
                    if flatten:
                        self._learn_connect(value)
                        value = debezium.flattened(value, self.side)
                except BadValue as error:
                    value = None
                    number = _schema_id(one) if self._how.needs_registry else None
                    parsed.refused.append(
                        RefusedRow(row, error.stage or self._stage, str(error), number)
                    )
                else:
                    if self._how.needs_registry:
                        parsed.schema_ids[row] = int.from_bytes(one[1:5], "big")
            parsed.values.append(value)
        return parsed

    def _read(self, content: bytes) -> Any:
        """Return the value in `content`, which begins with its schema id."""
        number, rest = unframed(content)
        indexes: tuple[int, ...] = ()
        if self._how.kind == "protobuf":
            indexes, rest = message_indexes(rest)
        if self._fixed is not None:
            return self._fixed.read(rest)
        assert self._schemas is not None, "a registry is checked by the declaration"
        reader = self._schemas.reader(number, indexes)
        self._learn(reader)
        if self._other_units[id(reader)]:
            raise BadValue(self._other_units[id(reader)], stage="schema")
        return reader.read(rest)

    def _learn(self, reader: ValueReader | None) -> None:
        if reader is not None and id(reader) not in self._types:
            kind = reader.type
            if self._how.debezium:
                kind = debezium.flattened_type(kind, self.side)
            # `schemas` keeps its readers, so `id` of another reader is never the same.
            self._types[id(reader)] = kind = kind or plain("json")
            self._other_units[id(reader)] = self._other_unit(kind)

    def _other_unit(self, kind: Type) -> str:
        """Return an error if a time or decimal has another unit than its column, otherwise ""."""
        for one in self._columns:
            for path in (one.source, *one.also):
                found = type_at(kind, path)
                other = found and other_unit(one.type, found, scales=self._base64_decimals)
                if other:
                    where = ".".join(path)
                    return f"{where}: its schema counts {other[1]}, and the column {other[0]}"
        return ""

    def _learn_connect(self, value: Any) -> None:
        """Remember the types of the Connect schema in a JSON value.

        Raises BadValue if a unit differs from that of its column.
        """
        if self._how.kind != "json" or not isinstance(value, dict) or "schema" not in value:
            return
        if value["schema"] != self._connect_schema:
            self._connect_schema = value["schema"]
            found = debezium.connect_type(value, self.side)
            self._connect_unit = self._other_unit(found) if found else ""
            is_new = found is not None and found not in self._types.values()
            if found is not None and is_new and len(self._types) < _SCHEMAS_MAX:
                self._types[len(self._types)] = found
        if self._connect_unit:
            raise BadValue(self._connect_unit, stage="schema")

    def _objects(self, parsed: _Parsed, converter: Converter) -> list[Any]:
        """Return the values, with None for a value that is not an object."""
        found = []
        for row, value in enumerate(parsed.values):
            if value is not None and not isinstance(value, dict):
                if self._columns or self._field_rules is IGNORE:
                    converter.refuse(row, (), f"{shown(value)} is no object")
                else:
                    converter.found(row, (), value)
                value = None
            found.append(value)
        return found

    def _column(
        self, one: Column, objects: Sequence[Any], converter: Converter, rows: Sequence[int]
    ) -> Any:
        if not one.source:
            values = objects
        elif len(one.source) == 1 and not one.also and not self._whole:
            name = one.source[0]
            values = [None if each is None else each.get(name) for each in objects]
        else:
            values = [_at(each, (one.source, *one.also)) for each in objects]
        return converter.column(values, one.type, one.source, rows)

    def _require_values(
        self,
        columns: Sequence[Any],
        content: Sequence[bytes | None],
        parsed: _Parsed,
        converter: Converter,
    ) -> None:
        """Refuse rows that have no value in a required column, except tombstones."""
        excused = {one.row for one in parsed.refused} | converter.findings.waiting
        for one, column in zip(self._columns, columns, strict=True):
            if one.nullable or not column.null_count:
                continue
            for row in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist():
                if content[row] is not None and row not in excused:
                    converter.refuse(row, one.source, "it is null or missing, and may not be")


def fixed_reader(how: Format, columns: Sequence[Column]) -> ValueReader | None:
    """Return the reader of all values of a format; None if each value has a schema id."""
    match how.kind:
        case "bytes":
            return BytesReader()
        case "string":
            return TextReader()
        case "json":
            return JsonReader(exact=any(one.type.has("decimal") for one in columns))
        case "csv":
            names = [one.source[-1] if one.source else one.name for one in columns]
            return CsvReader(names, how.csv)
    if how.schema is None:
        return None
    return schema_reader(how.kind, how.schema, how.message)


def schema_reader(kind: str, schema: str, message: str | None) -> ValueReader:
    """Return the reader of values of a declared schema. Raises OttlaError."""
    try:
        if kind == "avro":
            return AvroReader(schema)
        return ProtobufReader(base64.b64decode(schema), message)
    except (BadValue, ValueError) as error:
        raise WrongWords(str(error)) from error


def _chunks(batch: pa.RecordBatch) -> list[tuple[int, int]]:
    """Return chunks (start, size) of a batch that are small enough to be decoded at once."""
    count = batch.num_rows
    sizes = np.zeros(count, np.int64)
    for name in ("key", "value"):
        lengths = pc.binary_length(batch.column(name)).fill_null(0)
        sizes += lengths.to_numpy(zero_copy_only=False)
    ends = np.cumsum(sizes)
    found, start = [], 0
    while start < count:
        before = int(ends[start - 1]) if start else 0
        fitting = int(np.searchsorted(ends, before + _BYTES_AT_ONCE, "right")) - start
        size = max(1, min(_ROWS_AT_ONCE, fitting, count - start))
        found.append((start, size))
        start += size
    return found


def _schema_id(content: bytes) -> int | None:
    return int.from_bytes(content[1:5], "big") if len(content) >= 5 and content[0] == 0 else None


def _at(value: Any, paths: Sequence[Path]) -> Any:
    """Return the value at the first of `paths` that has one."""
    for path in paths:
        found = value
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        if found is not None:
            return found
    return None


def require_none(
    topic: str, partition: int, offsets: Callable[[int], int], decoded: Decoded
) -> None:
    """Raise OttlaError INVALID_RECORD if a row was refused, for the policy `fail`."""
    if not decoded.refused:
        return
    first = decoded.refused[0]
    more = len({one.row for one in decoded.refused}) - 1
    raise OttlaError(
        ErrorCode.INVALID_RECORD,
        f"the record at {topic}-{partition} offset {offsets(first.row)} can't be decoded "
        f"({first.stage}): {first.error}{f'; nor can {more} more of its batch' if more else ''}. "
        "Have such records among the dead letters (`ottla lake load --on-bad-record dead-letter`, "
        "load(…, decode=Decode(…, on_bad_record='dead-letter'))), or with nulls "
        "(--on-bad-record null)",
    )
