"""CSV, plain texts, Debezium's envelopes; and what a declaration refuses."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.errors import OttlaError
from ottla.lake.model.decode_spec import Csv, Decode, Format, columns, decode_from
from ottla.lake.model.layout import TypedSchema, columns_for, table_schema, typed_schema
from ottla.lake.model.types import parse_type
from ottla.lake.rows.debezium import envelope_columns
from ottla.lake.rows.decoder import Decoder
from tests.unit.lake.decode.batches import decoded, errors, lists, of, raw

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), TEXTS, st.booleans()), max_size=4))
def test_a_line_of_csv_stands_in_the_columns(rows: list[tuple[int, str, bool]]) -> None:
    """With quotes and line ends inside a field, too."""
    content: list[bytes | None] = [
        f'{number},"{text.replace(chr(34), chr(34) * 2)}",{str(flag).lower()}\n'.encode()
        for number, text, flag in rows
    ]
    how = of("csv", {"n": "int64", "s": "string", "b": "boolean"})
    found = decoded(how, content)
    assert errors(found) == {}
    assert list(zip(*lists(found), strict=True)) == rows


def test_a_bad_line_of_csv_costs_its_row() -> None:
    """Fields too few or too many, numbers that are none, two lines, and no UTF-8."""
    how = of("csv", {"n": "int32", "f": "float64", "d": "date", "x": "decimal(5,2)"})
    good = b"1,2.5,2024-02-29,3.14"
    bad = {
        b"1,2": "decode.value: it has 2 fields, not 4",
        b"1,2,3,4,5": "decode.value: it has 5 fields, not 4",
        b"": "decode.value: it holds 0 lines of CSV, not one",
        good + b"\n" + good: "decode.value: it holds 2 lines of CSV, not one",
        b'"1,2.5': "decode.value: no CSV",
        b"\xff,1,2,3": "decode.value: no CSV",
        b"x,1,2024-01-01,1": "schema: n: 'x' is no int32",
        b"1.5,1,2024-01-01,1": "schema: n: '1.5' is no int32",
        b"3000000000,1,2024-01-01,1": "schema: n: '3000000000' is no int32",
        b"1,1,2024-02-30,1": "schema: d: '2024-02-30' is no date",
        b"1,1,2024-01-01,1.234": "schema: x: '1.234' is no decimal(5,2)",
    }
    found = decoded(how, [good, *bad, good])
    said = errors(found)
    assert said.keys() == set(range(1, len(bad) + 1))
    for row, expected in enumerate(bad.values(), start=1):
        assert said[row].startswith(expected)
    assert lists(found)[0][-1] == 1


def test_csv_has_its_own_delimiter_quote_and_null() -> None:
    """A field larger than Python's usual limit comes through."""
    how = of("csv", {"a": "string", "b": "int64"}, csv=Csv(";", "'", "NULL"))
    long = "x" * 200_000
    found = decoded(how, [b"'a;b';NULL", f"{long};7".encode()])
    assert lists(found) == [["a;b", long], [None, 7]]


def test_text_and_bytes_are_one_column() -> None:
    """What is no UTF-8 is no text; a column may have any name."""
    text = Format("string", columns({"line": {"type": "string", "source": "$"}}))
    found = decoded(text, [b"a", b"\xff", None])
    assert lists(found) == [["a", None, None]]
    assert errors(found)[1].startswith("decode.value: no UTF-8")
    number = Format("json", columns({"n": {"type": "int64", "source": "$"}}))
    assert lists(decoded(number, [b"7", b"{}", None])) == [[7, None, None]]


def envelope(op: str, before: Any, after: Any, at: int = 1_700_000_000_000) -> dict[str, Any]:
    return {"op": op, "before": before, "after": after, "source": {"ts_ms": at}, "ts_ms": at + 1}


def test_an_envelope_of_debezium_is_four_columns() -> None:
    """With schema and payload or without; a tombstone has nulls; anything else is a bad row."""
    row = columns({"id": "int64", "price": "decimal(6,2)"})
    how = Format("json", row, debezium=True)
    schema = TypedSchema(value=envelope_columns(row))
    bare = envelope("u", {"id": 1, "price": "AMg="}, {"id": 1, "price": "ASw="})
    content = [
        json.dumps(bare).encode(),
        json.dumps(
            {"schema": None, "payload": envelope("d", {"id": 1, "price": None}, None)}
        ).encode(),
        None,
        b'{"id": 1}',
        b"[]",
        b'{"op": ["c"]}',
        json.dumps(envelope("c", None, {"id": "x"})).encode(),
    ]
    found = Decoder(Decode(value=how), schema).decode(raw(content))
    op, before, after, at = lists(found)
    assert op[:3] == ["u", "d", None]
    assert str(before[0]["price"]) == "2.00"
    assert str(after[0]["price"]) == "3.00"
    assert after[1] is None
    assert at[0].timestamp() == 1_700_000_000
    assert errors(found) == {
        3: "decode.value: no envelope of Debezium: its op is None",
        4: "decode.value: no envelope of Debezium: its op is []",
        5: "decode.value: no envelope of Debezium: its op is ['c']",
        6: "schema: after.id: 'x' is no integer",
    }


def test_columns_never_hide_those_of_the_load() -> None:
    """A field named like one of them gets the side before its name; a declared one is refused."""
    found = columns_for(parse_type("struct<offset: int64, KEY: string, id: int64>"), "value", set())
    assert [one.name for one in found] == ["value_offset", "value_KEY", "id"]
    taken = {"id"}
    assert [one.name for one in columns_for(parse_type("struct<id: int64>"), "key", taken)] == [
        "key_id"
    ]
    with pytest.raises(OttlaError, match="a column Offset is there already"):
        Decode(value=Format("json", columns({"Offset": "int64"})))
    with pytest.raises(OttlaError, match="a column a is there already"):
        Decode(
            value=Format("json", columns({"a": "int64"})),
            key=Format("json", columns({"A": "int64"})),
        )


def test_a_schema_of_a_manifest_is_read_as_it_was_written() -> None:
    """Names, types, sources, and what renames left."""
    schema = TypedSchema(
        3, columns({"k": "int64!"}), columns({"x": {"type": "json", "source": "a.b"}})
    )
    recorded = table_schema(schema, {})
    stored = json.loads(json.dumps(recorded.columns))
    assert typed_schema(replace(recorded, columns=stored)) == schema


def test_options_declare_what_the_classes_declare() -> None:
    """TOML and the command line give the same words."""
    found = decode_from(
        {
            "value": "debezium-json",
            "columns": {"id": "int64"},
            "key": "string",
            "on_bad_record": "null",
            "keep_raw": False,
            "rules": {"add": "ignore", "rename": {"b": "a"}},
            "csv": {"delimiter": ";"},
        }
    )
    assert found.value == Format("json", columns({"id": "int64"}), debezium=True, csv=Csv(";"))
    assert found.key == Format("string", csv=Csv(";"))
    assert (found.on_bad_record, found.keep_raw, found.rules.add) == ("null", False, "ignore")
    assert found.rules.rename == (("b", "a"),)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"value": "xml"}, "'xml' is no format"),
        ({"valeu": "json"}, "decode has valeu, which is not known; did you mean value"),
        ({"zzz": "json"}, "decode has zzz, which is not known; there are columns, csv"),
        (
            {"value": "csv", "csv": {"delimeter": ";"}},
            "csv of decode has delimeter, which is not known; did you mean delimiter",
        ),
        ({"value": "avro"}, "needs a schema"),
        ({"value": "csv"}, "csv needs columns"),
        ({"value": "csv", "columns": {"a": "list<int64>"}}, "can't be a list"),
        ({"value": "debezium-csv"}, "JSON or Avro"),
        ({"value": "json", "schema": "x"}, "is for avro and protobuf"),
        ({"value": "json", "on_bad_record": "skip"}, "fail, dead-letter or null"),
        ({"columns": {"a": "int64"}}, "need a format"),
        ({"value": "json", "columns": {"a": {"typ": "int64"}}}, "needs a type"),
        ({"value": "json", "columns": {"a": {"type": "int64", "typo": 1}}}, "did you mean type"),
        ({"value": "json", "rules": {"add": "drop"}}, "add is add, ignore or reject"),
        ({"value": "json", "rules": {"adds": "add"}}, "did you mean add"),
        ({"value": "json", "rules": "add"}, "decode can't be read"),
        ({"value": "json", "rules": {"rename": 7}}, "rename is 7, not a table"),
        ({"value": "json", "rules": {"rename": {"a": 7}}}, "rename is {'a': 7}, not a table"),
        ({"value": "json", "sample": -1}, "sample is -1, not a whole number above 0"),
        ({"value": "json", "sample": "x"}, "sample is 'x', not a whole number above 0"),
        ({"keep_raw": False}, "without decoded columns"),
    ],
)
def test_a_declaration_that_cannot_be_meant_is_refused(options: dict[str, Any], why: str) -> None:
    """Before anything is read, with what was expected."""
    with pytest.raises(OttlaError, match=why):
        decode_from(options)
