"""How typed columns follow the fields of records."""

import json
import os
import subprocess
import sys
import tracemalloc
from base64 import b64encode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ottla.base.errors import OttlaError
from ottla.lake.model.decode_spec import Decode, Format, columns, decode_from, options_of
from ottla.lake.model.layout import TypedSchema
from ottla.lake.model.types import parse_type
from ottla.lake.rows.decoder import Decoder
from ottla.lake.rows.evolution import (
    NewField,
    evolved,
    merged,
    reconciled,
    renamed,
    type_of,
    widened,
)
from ottla.lake.rows.sorted_rows import RowSorter, RowSorting
from tests.unit.lake.decode.batches import decoded, errors, lists, of, raw
from tests.unit.lake.decode.test_types import types


def schema(**declared: str) -> TypedSchema:
    return TypedSchema(value=columns(declared))


def new(path: str, kind: str) -> NewField:
    return NewField("value", tuple(path.split(".")) if path else (), parse_type(kind), 0)


def test_a_new_field_is_a_column_or_a_field_of_one() -> None:
    """Wherever it stands; the number of the schema grows by one for all of them."""
    found, said = evolved(
        schema(id="int32", o="struct<a: int64>", l="list<struct<x: int32>>"),
        [new("tag", "string"), new("o.b", "float64"), new("l.[].y", "date"), new("id", "int64")],
    )
    assert {one.name: str(one.type) for one in found.value} == {
        "id": "int64",
        "o": "struct<a: int64, b: float64>",
        "l": "list<struct<x: int32, y: date>>",
        "tag": "string",
    }
    assert found.number == 2
    assert said == [
        "add tag string",
        "add o.b float64",
        "add l.[].y date",
        "widen id to int64",
    ]


def test_columns_come_in_the_order_of_the_records_fields() -> None:
    """Whatever the seed of Python's hashes: each process of a load, and each load, has the same."""
    program = (
        "from ottla.lake.rows.sorted_rows import RowSorter, RowSorting\n"
        "from ottla.lake.model.decode_spec import Decode, Format\n"
        "from tests.unit.lake.decode.batches import raw\n"
        "sorter = RowSorter(RowSorting(Decode(value=Format('json'))))\n"
        'sorter.sort(raw([b\'{"z":1,"y":{"q":1},"x":2,"w":3,"v":4}\']), {})\n'
        "print([path[-1] for _, path in sorter.news])"
    )
    for seed in ("1", "2", "3"):
        ran = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stdout.strip() == "['z', 'y', 'x', 'w', 'v']"


def test_before_and_after_of_an_envelope_grow_together() -> None:
    """A field that only one of them has shown is a column's field in both."""
    declared = schema(before="struct<id: int64>", after="struct<id: int64>")
    found, _ = evolved(declared, [new("after.x", "string")], envelopes=frozenset({"value"}))
    assert {str(one.type) for one in found.value} == {"struct<id: int64, x: string>"}


def connect_envelope(scale: int, number: bytes) -> bytes:
    """An envelope of a row with a decimal and a date, as Connect's converter to JSON writes it."""
    decimal = {
        "field": "price",
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": str(scale), "connect.decimal.precision": "10"},
    }
    day = {"field": "day", "type": "int32", "name": "io.debezium.time.Date"}
    row = {"type": "struct", "fields": [decimal, day]}
    payload = {"op": "c", "after": {"price": b64encode(number).decode(), "day": 19_000}}
    fields = [{**row, "field": "before"}, {**row, "field": "after"}]
    return json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": payload}).encode()


def test_connects_schema_gives_types_and_says_where_a_column_counts_otherwise() -> None:
    """The unscaled number 1234 is 12.34 with two digits: with four it is no value of the column."""
    how = Format("json", debezium=True)
    sorter = RowSorter(RowSorting(Decode(value=how)))
    sorter.sort(raw([connect_envelope(2, b"\x04\xd2")]), {})
    found, _ = evolved(TypedSchema(), [new for new, _ in sorter.news.values()])
    assert str(found.value[2].type) == "struct<price: decimal(10,2), day: date>"
    values: list[bytes | None] = [connect_envelope(scale, b"\x04\xd2") for scale in (2, 4, 2)]
    read = decoded(how, values, schema=found)
    assert [row and str(row["price"]) for row in lists(read)[2]] == ["12.34", None, "12.34"]
    assert errors(read) == {
        1: "schema: before: its schema counts decimal(10,4), and the column decimal(10,2)"
    }


@pytest.mark.parametrize(
    ("narrow", "other"),
    [("timestamp(ms)", "timestamp(us)"), ("decimal(10,2)", "decimal(12,4)"), ("int64", "json")],
)
def test_a_type_that_reads_a_record_otherwise_is_no_wider_one(narrow: str, other: str) -> None:
    """Rows may be decoded again after a change of columns, and have to mean what they meant."""
    assert widened(parse_type(narrow), parse_type(other)) is None


def test_a_renamed_column_takes_fields_of_both_names() -> None:
    """Once; a name that is there already, or is not, is refused."""
    before = schema(old="int64", other="string")
    found, said = renamed(before, [("new", "old")])
    assert said == ["rename old to new"]
    assert [one.name for one in found.value] == ["new", "other"]
    assert renamed(found, [("new", "old")]) == (found, [])
    read = decoded(of("json", {}), [b'{"old":1}', b'{"new":2}'], schema=found)
    assert lists(read)[0] == [1, 2]
    for rename, why in ((("x", "y"), "there is no column y"), (("other", "old"), "of that name")):
        with pytest.raises(OttlaError, match=why):
            renamed(before, [rename])


def test_a_declaration_adds_and_widens_and_changes_nothing_else() -> None:
    """What it leaves out stays."""
    found, said = reconciled(schema(id="int32", x="string"), schema(id="int64", y="date"))
    assert said == ["widen id from int32 to int64", "add y date"]
    assert [one.name for one in found.value] == ["id", "x", "y"]
    for kind in ("string", "float64", "json", "list<int64>"):
        with pytest.raises(OttlaError, match=rf"id is int64 in the table and can't become {kind}"):
            reconciled(schema(id="int64"), schema(id=kind))


def test_a_declaration_that_is_narrower_leaves_the_column_as_it_is() -> None:
    """The records have widened it meanwhile, or given it fields: the declaration is older."""
    wide = schema(id="int64", o="struct<a: int64, b: string>", l="list<int64>")
    older = schema(id="int32", o="struct<a: int32>", l="list<int32>")
    assert reconciled(wide, older) == (wide, [])
    found, said = reconciled(older, wide)
    assert [str(one.type) for one in found.value] == [str(one.type) for one in wide.value]
    assert len(said) == 3


@given(types(), types(), types())
def test_what_two_types_merge_into_holds_both(first: object, second: object, third: object) -> None:
    """In any order, and again; a widened type is merged as well."""
    one = merged(first, second)  # type: ignore[arg-type]
    assert one is not None
    assert merged(one, first) == one or merged(one, first).kind == "json"  # type: ignore[arg-type,union-attr]
    wide = widened(first, second)  # type: ignore[arg-type]
    assert wide in (None, one)
    assert merged(merged(first, second), third) is not None  # type: ignore[arg-type]


def _hides_a_type(value: object) -> bool:
    """An empty list, or one of nulls, shows no type and may stand beside any other value."""
    if not isinstance(value, list | dict):
        return False
    inner = list(value.values()) if isinstance(value, dict) else value
    return type_of(value) is None or not inner or any(map(_hides_a_type, inner))


@example([False, [None]])
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
                        st.text(st.characters(codec="utf-8"), max_size=2), inner, max_size=3),
                    max_leaves=8))  # fmt: skip
def test_a_value_fits_the_type_that_it_shows(value: object) -> None:
    """What inference makes of a sample decodes the sample; or the value is no JSON."""
    kind = type_of(value)
    try:
        content = json.dumps({"x": value}, allow_nan=False).encode()
    except (ValueError, UnicodeEncodeError):
        return
    if _hides_a_type(value):
        return
    if kind is None or b"\\ud" in content or kind.has("float64"):
        return
    found = decoded(of("json", {"x": str(kind)}), [content])
    assert all("beyond" in one or "integer" in one or "no string" in one or "base64" in one
               for one in errors(found).values())  # fmt: skip


def test_options_and_declaration_are_each_other_inverse() -> None:
    """What a manifest keeps of a declaration makes the same one again."""
    declared = Decode(
        value=Format("json", columns({"id": "int64!", "x": {"type": "json", "source": "a.b"}})),
        key=Format("avro", schema='"string"', framed=True),
        registry="http://r:8081",
        on_bad_record="null",
    )
    again = decode_from(json.loads(json.dumps(options_of(declared))))
    assert again == declared


def test_memory_stays_within_bounds_for_values_that_expand() -> None:
    """A batch of 40 MB of small objects is decoded piece by piece."""
    value = b"[" + b"1," * 500 + b"1]"
    batch = raw([b'{"x":' + value + b"}"] * 20_000)
    decoder = Decoder(Decode(value=of("json", {"x": "list<int64>"})), schema(x="list<int64>"))
    tracemalloc.start()
    found = decoder.decode(batch)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.columns[0]) == 20_000
    assert peak < 250 << 20


def test_names_that_vary_from_record_to_record_do_not_become_columns_without_end() -> None:
    """The load fails with advice; a map takes them all."""
    content = [b'{"m":{"k%d":1}}' % number for number in range(1_500)]
    sorter = RowSorter(RowSorting(Decode(value=Format("json"), on_bad_record="null")))
    with pytest.raises(OttlaError, match="more than 1000 fields that no column has"):
        sorter.sort(raw([b'{"k%d":1}' % number for number in range(1_500)]), {})
    found = decoded(of("json", {"m": "map<int64>"}), content)
    assert errors(found) == {}


def test_a_name_with_half_a_surrogate_pair_is_a_bad_row_in_either_parser() -> None:
    """No column could have that name."""
    for kind in ("int64", "decimal(4,2)"):
        how = of("json", {"d": kind})
        assert errors(decoded(how, [b'{"\\ud800":1}', b'{"d":1}'])).keys() == {0}
