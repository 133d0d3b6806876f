"""Avro into typed columns."""

import io
import json
from contextlib import suppress
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.base.errors import OttlaError
from ottla.lake.model.layout import columns_for
from ottla.lake.model.types import parse_type
from ottla.lake.rows.avro_values import AvroReader
from ottla.lake.rows.value_reader import BadValue, SchemaUnusable
from tests.unit.lake.decode.batches import decoded, errors, lists, of

# A schema of Avro beside a strategy of values for it, and what the column holds of a value.
PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.binary(),
    "string": st.text(st.characters(codec="utf-8")),
}


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> tuple[Any, st.SearchStrategy[Any]]:
    kinds = [*PRIMITIVES, "fixed", "enum"]
    kind = draw(st.sampled_from(kinds + ["array", "map", "record", "nullable"] * (depth > 0)))
    if kind in PRIMITIVES:
        return kind, PRIMITIVES[kind]
    name = f"n{draw(st.uuids()).hex}"
    if kind == "fixed":
        return {"type": "fixed", "name": name, "size": 3}, st.binary(min_size=3, max_size=3)
    if kind == "enum":
        return {"type": "enum", "name": name, "symbols": ["A", "B"]}, st.sampled_from("AB")
    if kind == "record":
        fields = draw(st.lists(schemas(depth - 1), min_size=1, max_size=3))
        schema = {
            "type": "record",
            "name": name,
            "fields": [{"name": f"f{n}", "type": one} for n, (one, _) in enumerate(fields)],
        }
        return schema, st.fixed_dictionaries({f"f{n}": s for n, (_, s) in enumerate(fields)})
    inner, values = draw(schemas(depth - 1))
    if kind == "array":
        return {"type": "array", "items": inner}, st.lists(values, max_size=3)
    if kind == "map":
        return {"type": "map", "values": inner}, st.dictionaries(
            PRIMITIVES["string"], values, max_size=3
        )
    if isinstance(inner, list):
        return inner, values
    return ["null", inner], values | st.none()


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def reader(schema: Any) -> AvroReader:
    return AvroReader(json.dumps(schema))


def columns_in(schema: Any) -> dict[str, str]:
    kind = reader(schema).type
    assert kind is not None
    return {
        one.name: {"type": str(one.type), "source": ".".join(one.source) or "$"}
        for one in columns_for(kind, "value", set())
    }


def plain(value: Any) -> Any:
    """As Arrow gives values to Python: maps are lists of pairs."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list):
        pairs = value and all(isinstance(one, tuple) for one in value)
        return {k: plain(v) for k, v in value} if pairs else [plain(one) for one in value]
    return value


@settings(deadline=None)
@given(st.data(), schemas())
def test_what_avro_wrote_stands_in_the_columns(
    data: st.DataObject, drawn: tuple[Any, st.SearchStrategy[Any]]
) -> None:
    """Any value of any schema comes through unchanged; empty maps may read as empty lists."""
    schema, strategy = drawn
    record = {"type": "record", "name": "top", "fields": [{"name": "x", "type": schema}]}
    values = data.draw(st.lists(st.fixed_dictionaries({"x": strategy}), max_size=4))
    declared = columns_in(record)
    how = of("avro", declared, schema=json.dumps(record))
    found = decoded(how, [written(record, one) for one in values])
    assert errors(found) == {}
    empty = {"x": []}
    for column in found.columns:
        column.validate(full=True)
        assert [plain(one) or empty["x"] for one in column.to_pylist()] == [
            plain(one["x"]) or empty["x"] for one in values
        ] or [plain(one) for one in column.to_pylist()] == [json_free(one["x"]) for one in values]


def json_free(value: Any) -> Any:
    """Empty maps as lists, which is how Arrow shows them."""
    if isinstance(value, dict):
        return {name: json_free(one) for name, one in value.items()} or []
    if isinstance(value, list):
        return [json_free(one) for one in value]
    return value


@settings(deadline=None)
@given(schemas(), st.binary(max_size=40))
def test_arbitrary_bytes_give_a_value_or_a_bad_row(
    drawn: tuple[Any, st.SearchStrategy[Any]], content: bytes
) -> None:
    """No bytes raise anything but BadValue."""
    with suppress(BadValue):
        reader(drawn[0]).read(content)


LOGICAL = [
    ({"type": "int", "logicalType": "date"}, 19_000, "date"),
    ({"type": "int", "logicalType": "time-millis"}, 1_000, "time(ms)"),
    ({"type": "long", "logicalType": "time-micros"}, 1_000, "time(us)"),
    ({"type": "long", "logicalType": "timestamp-millis"}, 253_402_300_800_000, "timestamp(ms)"),
    ({"type": "long", "logicalType": "timestamp-micros"}, 2**62, "timestamp(us)"),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, 5, "datetime(us)"),
    ({"type": "string", "logicalType": "uuid"}, "x", "string"),
    ({"type": "long", "logicalType": "unheard-of"}, 7, "int64"),
    ({"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}, 7, "datetime(us)"),
    ({"type": {"type": "long", "logicalType": "timestamp-millis"}}, 7, "timestamp(ms)"),
]


@pytest.mark.parametrize(("schema", "value", "kind"), LOGICAL, ids=[one[2] for one in LOGICAL])
def test_logical_types_are_columns_of_their_kind(schema: Any, value: Any, kind: str) -> None:
    """Also times that Python's dates cannot hold."""
    bare = {"type": "record", "name": "r", "fields": [{"name": "x", "type": schema}]}
    inner = schema["type"] if isinstance(schema["type"], str) else "long"
    plain_schema = {"type": "record", "name": "r", "fields": [{"name": "x", "type": inner}]}
    assert str(reader(bare).type) == f"struct<x: {kind}>"
    found = decoded(
        of("avro", {"x": kind}, schema=json.dumps(bare)), [written(plain_schema, {"x": value})]
    )
    assert errors(found) == {}
    arrow = parse_type(kind).arrow
    (column,) = found.columns
    assert column.type == arrow
    assert (
        column.cast("int64" if kind.endswith("s)") and "ms" not in kind else arrow).null_count == 0
    )


@pytest.mark.parametrize("form", ["bytes", "fixed"])
@given(unscaled=st.integers(-(10**9) + 1, 10**9 - 1))
def test_decimals_keep_their_digits(form: str, unscaled: int) -> None:
    """From the unscaled number in two's complement, whatever its length."""
    logical: dict[str, Any] = {"logicalType": "decimal", "precision": 9, "scale": 3}
    kind = {"type": form, **logical} | ({"name": "d", "size": 5} if form == "fixed" else {})
    schema = {"type": "record", "name": "r", "fields": [{"name": "x", "type": kind}]}
    value = Decimal(unscaled).scaleb(-3)
    found = decoded(
        of("avro", columns_in(schema), schema=json.dumps(schema)), [written(schema, {"x": value})]
    )
    assert lists(found) == [[value]]


def test_a_decimal_of_more_digits_than_its_precision_is_refused_not_rounded() -> None:
    """fastavro's own decimals would round it."""
    schema = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    found = decoded(
        of("avro", columns_in(schema), schema=json.dumps(schema)),
        [b"\x0a" + (123456789).to_bytes(5, "big")],
    )
    assert errors(found)[0].endswith("1234567.89 is beyond decimal(4,2)")


def test_branches_of_a_union_are_fields_of_a_struct() -> None:
    """Numbers are the widest number; null is null; others have a member each."""
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "n", "type": ["null", "int", "double"]},
            {
                "name": "u",
                "type": [
                    "null",
                    "string",
                    {"type": "record", "name": "p", "fields": [{"name": "a", "type": "int"}]},
                ],
            },
        ],
    }
    assert str(reader(schema).type) == (
        "struct<n: float64, u: struct<member0: string, member1: struct<a: int32>>>"
    )
    content = [
        written(schema, {"n": n, "u": u}) for n, u in [(None, None), (7, "x"), (1.5, {"a": 3})]
    ]
    found = decoded(of("avro", columns_in(schema), schema=json.dumps(schema)), content)
    assert lists(found) == [
        [None, 7.0, 1.5],
        [None, {"member0": "x", "member1": None}, {"member0": None, "member1": {"a": 3}}],
    ]


RECURSIVE = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (RECURSIVE, "recursive"),
        ({"type": "array", "items": "null"}, "take no bytes"),
        (
            {"type": "array", "items": {"type": "record", "name": "e", "fields": []}},
            "take no bytes",
        ),
        ({"type": "array", "items": {"type": "fixed", "name": "f", "size": 0}}, "take no bytes"),
        (
            {"type": "record", "name": "r", "fields": [{"name": "x", "type": "Other"}]},
            "does not define",
        ),
        ({"type": "record", "name": "r"}, "can't be used"),
        ({"type": "record", "fields": []}, "can't be used"),
        ({"type": "nothing"}, "does not define"),
        (17, "can't be used"),
    ],
)
def test_a_schema_without_columns_or_without_bounds_is_refused(schema: Any, why: str) -> None:
    """A recursive type is no column; a few bytes could claim any number of items without bytes."""
    with pytest.raises(SchemaUnusable, match=why):
        reader(schema)
    with pytest.raises(OttlaError, match=why):
        decoded(of("avro", {"x": "int64"}, schema=json.dumps(schema)), [b""])


def test_a_schema_that_multiplies_its_own_names_is_refused() -> None:
    """Sixty records that each use the one before twice would have 2^60 columns."""
    inner: Any = "int"
    for level in range(40):
        name = f"r{level}"
        inner = {
            "type": "record",
            "name": name,
            "fields": [
                {"name": "a", "type": inner},
                {"name": "b", "type": f"r{level - 1}" if level else "int"},
            ],
        }
    with pytest.raises(SchemaUnusable, match="more than 5000 fields"):
        reader(inner)


def test_what_is_cut_off_or_too_long_is_a_bad_row() -> None:
    """Each prefix of a value, and a value with a byte behind it, costs its row."""
    schema = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "a", "type": "string"}, {"name": "b", "type": "long"}],
    }
    good = written(schema, {"a": "hello", "b": 10**9})
    content: list[bytes | None] = [good[:size] for size in range(len(good))] + [good + b"\0", good]
    found = decoded(of("avro", columns_in(schema), schema=json.dumps(schema)), content)
    assert errors(found).keys() == set(range(len(good) + 1))
    assert lists(found)[1][-1] == 10**9


def test_a_named_type_may_be_used_again_and_lives_in_its_namespace() -> None:
    """The second use names what the first one defined."""
    schema = {
        "type": "record",
        "name": "a.b.R",
        "fields": [
            {"name": "x", "type": {"type": "enum", "name": "E", "symbols": ["S"]}},
            {"name": "y", "type": "a.b.E"},
            {"name": "z", "type": ["null", "E"]},
        ],
    }
    found = decoded(
        of("avro", columns_in(schema), schema=json.dumps(schema)),
        [written(schema, {"x": "S", "y": "S", "z": None})],
    )
    assert lists(found) == [["S"], ["S"], [None]]
