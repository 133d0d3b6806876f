"""JSON into typed columns."""

import base64
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.lake.model.types import Type, struct_of
from tests.unit.lake.decode.batches import decoded, errors, lists, of
from tests.unit.lake.decode.test_types import types

EXACT = {
    "boolean": st.booleans(),
    "string": st.text(st.characters(codec="utf-8")),
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float32": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "binary": st.binary(),
    "date": st.integers(-700_000, 2_900_000),
    "timestamp(ms)": st.integers(-(2**50), 2**50),
    "timestamp(us)": st.integers(-(2**62), 2**62),
    "datetime(us)": st.integers(-(2**62), 2**62),
    "time(ms)": st.integers(0, 86_399_999),
}


def values(kind: Type) -> st.SearchStrategy[Any]:
    """Values as Python has them; None too."""
    match kind.kind:
        case "struct":
            found: st.SearchStrategy[Any] = st.fixed_dictionaries(
                {name: values(each) for name, each in kind.fields}
            )
        case "list":
            found = st.lists(values(kind.element), max_size=3)
        case "map":
            found = st.dictionaries(EXACT["string"], values(kind.element), max_size=3)
        case "decimal":
            limit = 10**kind.precision - 1
            scale = kind.scale
            found = st.integers(-limit, limit).map(
                lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -scale))
            )
        case "json":
            found = st.just('{"a":[1,null]}')
        case _:
            found = EXACT[kind.kind]
    return found | st.none()


def as_json(value: Any, kind: Type) -> Any:
    """What a producer of JSON writes for it."""
    if value is None:
        return None
    match kind.kind:
        case "struct":
            return {name: as_json(value[name], each) for name, each in kind.fields}
        case "list":
            return [as_json(one, kind.element) for one in value]
        case "map":
            return {key: as_json(one, kind.element) for key, one in value.items()}
        case "decimal":
            return str(value)
        case "binary":
            return base64.b64encode(value).decode()
        case "json":
            return json.loads(value)
    return value


KINDS = st.dictionaries(
    st.from_regex("c[a-z]{2,4}", fullmatch=True),
    types(),
    min_size=1,
    max_size=3,
)


@given(st.data(), KINDS)
def test_what_a_producer_wrote_stands_in_the_columns(
    data: st.DataObject, kinds: dict[str, Type]
) -> None:
    """Any value of any type comes through JSON unchanged, beside any others."""
    row = struct_of(tuple(kinds.items()))
    objects = data.draw(st.lists(values(row), max_size=4))
    content = [None if one is None else json.dumps(as_json(one, row)).encode() for one in objects]
    found = decoded(of("json", {name: str(kind) for name, kind in kinds.items()}), content)
    assert errors(found) == {}
    for (name, kind), column in zip(kinds.items(), found.columns, strict=True):
        expected = pa.array([None if one is None else one[name] for one in objects], kind.arrow)
        column.validate(full=True)
        assert column.equals(expected) or column.to_pylist() == expected.to_pylist()


HOSTILE = [
    (b"", "decode.value: no JSON"),
    (b"{", "decode.value: no JSON"),
    (b"NaN", "decode.value: no JSON"),
    (b'{"n": NaN}', "decode.value: no JSON"),
    (b'{"s": "\xff"}', "decode.value: no JSON"),
    (b'{"s": "\\ud800"}', None),
    (b"[" * 100_000 + b"]" * 100_000, "decode.value: no JSON"),
    (b'{"x":' * 100_000 + b"1" + b"}" * 100_000, "decode.value: no JSON"),
    (b"[1]", "schema: [1] is no object"),
    (b"17", "schema: 17 is no object"),
    (b'{"n": 1.5}', "schema: n: 1.5 is no integer"),
    (b'{"n": true}', "schema: n: True is no integer"),
    (b'{"n": "1"}', "schema: n: '1' is no integer"),
    (b'{"n": 9223372036854775808}', "schema: n: 9223372036854775808 is beyond int64"),
    (b'{"n": 1234567890123456789012345678901234567890}', "schema: n: "),
    (b'{"n": ' + b"9" * 10_000 + b"}", None),
    (b'{"s": 1}', "schema: s: 1 is no string"),
    (b'{"l": "abc"}', "schema: l: 'abc' is no list"),
    (b'{"l": [1, "a"]}', "schema: l.[]: 'a' is no integer"),
    (b'{"o": [1]}', "schema: o: [1] is no object"),
    (b'{"o": {"a": {}}}', "schema: o.a: {} is no integer"),
    (b'{"m": {"a": "b"}}', "schema: m.{}: 'b' is no integer"),
    (b'{"t": "yesterday"}', "schema: t: 'yesterday' is no timestamp(us)"),
    (b'{"t": 99999999999999999999}', None),
    (b'{"ms": 9223372036854776}', "schema: ms: 9223372036854776 ms is beyond"),
    (b'{"d": "1.234"}', "schema: d: '1.234' has more than 2 digits behind the point"),
    (b'{"d": 1e30}', None),
    (b'{"d": "NaN"}', "schema: d: 'NaN' is no decimal(4,2)"),
    (b'{"b": "*"}', "schema: b: '*' is no base64"),
]
DECLARED = {
    "n": "int64",
    "s": "string",
    "l": "list<int64>",
    "o": "struct<a: int64>",
    "m": "map<int64>",
    "t": "timestamp",
    "ms": "timestamp(ms)",
    "b": "binary",
}


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("content", "error"), HOSTILE, ids=[str(n) for n in range(len(HOSTILE))])
def test_a_hostile_value_costs_its_own_row(content: bytes, error: str | None, exact: bool) -> None:
    """Whatever the bytes are, the rows beside them have their columns, and the error its cause."""
    declared = {**DECLARED, "d": "decimal(4,2)"} if exact or b'"d"' in content else DECLARED
    good = b'{"n": 7, "s": "x", "l": [1], "o": {"a": 1}, "m": {"k": 2}, "t": 5, "d": 1.25}'
    found = decoded(of("json", declared), [good, content, None, good])
    said = errors(found)
    assert said.keys() == {1}
    if error is not None:
        assert said[1].startswith(error)
    columns = dict(zip(declared, lists(found), strict=True))
    assert columns["n"][0] == columns["n"][3] == 7
    assert columns["m"][0] == [("k", 2)]
    assert columns["s"][2] is None
    for column in found.columns:
        column.validate(full=True)


@given(
    st.lists(
        st.sampled_from(
            [
                b'{"n":1}',
                b'{"n":1.0}',
                b'{"n":1e3}',
                b'{"n":1.5}',
                b'{"n":"1"}',
                b"{}",
                b'{"n":null}',
                b"x",
                b'{"t":"2024-01-01T00:00:00Z"}',
                b'{"t":"2024-01-01 00:00:00"}',
                b'{"t":1}',
                b'{"f":1}',
                b'{"f":1.5}',
                b'{"f":18446744073709551615}',
                b'{"b":1}',
                b'{"b":true}',
            ]
        ),
        max_size=8,
    )
)
def test_a_row_is_decoded_the_same_beside_any_others(content: list[bytes | None]) -> None:
    """No row's columns or error depend on the rest of its batch."""
    how = of("json", {"n": "int64", "t": "timestamp", "f": "float64", "b": "boolean"})
    together = decoded(how, content)
    for row, one in enumerate(content):
        alone = decoded(how, [one])
        assert [column[0] for column in lists(alone)] == [column[row] for column in lists(together)]
        assert errors(alone).get(0) == errors(together).get(row)


def test_numbers_keep_all_their_digits_where_a_column_is_a_decimal() -> None:
    """0.1 and numbers of 30 digits never pass through a float on their way to a decimal."""
    content = [b'{"d": 123456789012345678901234567890.12345678}', b'{"d": 0.10000000}', b'{"d": 7}']
    found = decoded(of("json", {"d": "decimal(38,8)"}), content)
    assert lists(found) == [
        [Decimal("123456789012345678901234567890.12345678"), Decimal("0.10000000"), Decimal(7)]
    ]


def test_a_column_that_may_not_be_null_makes_its_record_a_bad_one() -> None:
    """Missing and null are errors there; a record without value has no columns at all."""
    how = of("json", {"id": "int64!", "x": {"type": "string", "source": "deep.x"}})
    found = decoded(how, [b'{"deep":{"x":"y"}}', b'{"id":null}', b'{"id":3}', None, b"null"])
    assert errors(found) == dict.fromkeys(
        (0, 1, 4), "schema: id: it is null or missing, and may not be"
    )
    assert lists(found) == [[None, None, 3, None, None], ["y", None, None, None, None]]


def test_a_value_that_may_not_be_null_as_a_whole_is_no_null_of_json() -> None:
    """A tombstone has no value; what can't be read is refused for that."""
    how = of(
        "json", {"n": {"type": "int64!", "source": "$"}, "x": {"type": "int64", "source": "x"}}
    )
    found = decoded(how, [b"7", b"null", None, b"{", b'{"x":1}'])
    why = errors(found)
    assert why.pop(1) == "schema: it is null or missing, and may not be"
    assert {row: error.partition(":")[0] for row, error in why.items()} == {
        3: "decode.value",
        4: "schema",
    }
    assert lists(found) == [[7, None, None, None, None], [None, None, None, None, 1]]


def test_infinity_and_nan_are_no_json_also_where_decimals_are_read() -> None:
    """Python's own parser would take them."""
    how = of("json", {"d": "decimal(4,2)", "f": "float64"})
    found = decoded(how, [b'{"f": Infinity}', b'{"f": -1e308}', b'{"f": 1e400}'])
    assert errors(found).keys() == {0, 2}
    assert lists(found)[1] == [None, -1e308, None]
