"""Types of columns in words."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.errors import OttlaError
from ottla.lake.model.types import (
    Type,
    decimal_of,
    list_of,
    map_of,
    parse_type,
    plain,
    struct_of,
)

PLAIN = st.sampled_from(
    [
        "boolean",
        "int8",
        "int16",
        "int32",
        "int64",
        "float32",
        "float64",
        "string",
        "binary",
        "date",
        "timestamp(ms)",
        "timestamp(us)",
        "datetime(us)",
        "time(ms)",
        "json",
    ]
).map(plain)
NAMES = st.text(st.characters(codec="utf-8"), max_size=5)


def types(names: st.SearchStrategy[str] = NAMES) -> st.SearchStrategy[Type]:
    decimals = st.integers(1, 38).flatmap(
        lambda precision: st.integers(0, precision).map(lambda scale: decimal_of(precision, scale))
    )
    return st.recursive(
        PLAIN | decimals,
        lambda inner: (
            inner.map(list_of)
            | inner.map(map_of)
            | st.dictionaries(names, inner, min_size=1, max_size=3).map(
                lambda fields: struct_of(tuple(fields.items()))
            )
        ),
        max_leaves=6,
    )


@given(types())
def test_a_type_in_words_is_read_as_the_same_type(kind: Type) -> None:
    """What stands in a manifest means the column that was written."""
    assert parse_type(str(kind)) == kind


def test_words_of_other_systems_mean_the_same() -> None:
    """`bigint` and `long` are int64; a map may name its keys."""
    assert parse_type("bigint") == parse_type("long") == plain("int64")
    assert parse_type("array<INT>") == list_of(plain("int32"))
    assert parse_type("map<string, double>") == map_of(plain("float64"))
    assert parse_type("timestamp").arrow == pa.timestamp("us", tz="UTC")
    assert parse_type("struct<a: decimal(4), `b c`: date>") == struct_of(
        (("a", decimal_of(4, 0)), ("b c", plain("date")))
    )


@pytest.mark.parametrize(
    "words",
    [
        "",
        "integer8",
        "decimal(39,2)",
        "decimal(4,5)",
        "decimal(x)",
        "list<",
        "list<int64",
        "int64 x",
        "struct<a int64>",
        "struct<a: int64, a: int64>",
        "map<int32, string>",
        "timestamp(ns)",
        "int64;",
        "list<" * 40 + "int64" + ">" * 40,
    ],
)
def test_other_words_are_refused_with_the_reason(words: str) -> None:
    """A word that is no type fails before anything is read."""
    with pytest.raises(OttlaError, match=r"the type|a precision"):
        parse_type(words)
