"""A `server.properties` is read as java.util.Properties reads it (its `load` method's contract)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import parse_properties, properties_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", {"a": "1"}),
        ("a:1", {"a": "1"}),
        ("a 1", {"a": "1"}),
        ("a = 1", {"a": "1"}),
        ("a\t:\t1", {"a": "1"}),
        ("  a=1", {"a": "1"}),
        ("a=b=c:d", {"a": "b=c:d"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("# a=1\n! b=2\n\nc=3", {"c": "3"}),
        ("a=1 # no comment", {"a": "1 # no comment"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=x,\\\n   y", {"a": "x,y"}),
        ("a=x\\\\\nb=2", {"a": "x\\", "b": "2"}),
        ("a=x\\", {"a": "x"}),
        ("a\\=b=1", {"a=b": "1"}),
        ("a\\ b=1", {"a b": "1"}),
        ("a=\\t\\n\\u00e9\\q", {"a": "\t\né" + "q"}),
        ("a=1\r\nb=2\r\n", {"a": "1", "b": "2"}),
        ("a=\\\n# still the value", {"a": "# still the value"}),
    ],
)
def test_lines_become_names_and_values(text, expected):
    """Separators, comments, continued lines and escapes."""
    assert parse_properties(text) == expected


def test_a_broken_escape_is_refused_with_its_line():
    """Java refuses it too."""
    with pytest.raises(OttlaError) as raised:
        parse_properties("a=1\nb=\\u00g1\n")
    assert raised.value.code is ErrorCode.INVALID_CONFIG
    assert "Line 2" in raised.value.message


@given(st.dictionaries(st.sampled_from(["a", "b.c"]), st.text()))
def test_what_is_written_is_read_again(properties):
    """Backslashes, line ends of every kind and blanks in front included."""
    assert parse_properties(properties_text(properties)) == properties
