"""How records are shown."""

import json

import click
import pytest

from ottla.base.ids import TopicPartition
from ottla.cli.consume import shape
from ottla.record.codec import Record

PLACE = TopicPartition("flights", 3)
RECORD = Record(17, 1_704_067_200_000, b"N1", b'{"a": 1}', [("host", b"web1"), ("empty", None)])
BARE = Record(18, 1_704_067_200_000, None, None)


def test_values_are_lines_and_null_is_empty() -> None:
    """With keys, a tab stands between key and value."""
    assert shape.values(keys=False, is_terminal=False)(PLACE, RECORD) == b'{"a": 1}\n'
    assert shape.values(keys=True, is_terminal=False)(PLACE, RECORD) == b'N1\t{"a": 1}\n'
    assert shape.values(keys=True, is_terminal=False)(PLACE, BARE) == b"\t\n"


def test_bytes_go_through_a_pipe_unchanged_and_do_not_command_a_terminal() -> None:
    """What is no text, and what a terminal would obey, is escaped there and only there."""
    record = Record(0, 0, None, b"\xff\x1b[31mred\tx")
    assert shape.values(keys=False, is_terminal=False)(PLACE, record) == b"\xff\x1b[31mred\tx\n"
    shown = shape.values(keys=False, is_terminal=True)(PLACE, record)
    assert shown == b"\\xff\\x1b[31mred\tx\n"


def test_json_line_holds_all_of_a_record() -> None:
    """Field names are stable; times are told in both forms."""
    assert json.loads(shape.json_lines(PLACE, RECORD)) == {
        "topic": "flights",
        "partition": 3,
        "offset": 17,
        "timestamp": 1_704_067_200_000,
        "time": "2024-01-01T00:00:00.000Z",
        "key": "N1",
        "value": '{"a": 1}',
        "headers": [["host", "web1"], ["empty", None]],
    }


def test_json_tells_bytes_from_null() -> None:
    """Bytes that are no text stand as base64 beside a null; a null stands alone."""
    told = json.loads(shape.json_lines(PLACE, Record(0, 0, None, b"\xff\x00")))
    assert (told["value"], told["value_base64"]) == (None, "/wA=")
    assert "key_base64" not in told
    assert "value_base64" not in json.loads(shape.json_lines(PLACE, BARE))


def test_pretty_indents_json_and_leaves_the_rest() -> None:
    """A value that is no JSON is shown as it is."""
    pretty = shape.pretty(keys=False, whole=False, is_terminal=False)
    assert pretty(PLACE, RECORD) == b'{\n  "a": 1\n}\n'
    assert pretty(PLACE, Record(0, 0, None, b"hello {")) == b"hello {\n"


def test_pretty_on_a_terminal_has_colours_and_no_commands() -> None:
    """Escapes inside of strings stay escapes."""
    value = json.dumps({"k": ["\u001b[2J", 1, None, True, {}, []]}).encode()
    shown = shape.pretty(keys=False, whole=False, is_terminal=True)(
        PLACE, Record(0, 0, None, value)
    ).decode()
    assert "\x1b[2J" not in shown
    assert json.loads(click.unstyle(shown)) == {"k": ["\u001b[2J", 1, None, True, {}, []]}
    assert click.style("null", fg="magenta") in shown


def test_pretty_whole_record_has_its_value_parsed() -> None:
    """With --json and --pretty the value is part of the object."""
    shown = shape.pretty(keys=False, whole=True, is_terminal=False)(PLACE, RECORD)
    assert json.loads(shown)["value"] == {"a": 1}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (r"%t-%p@%o %k=%v\n", b'flights-3@17 N1={"a": 1}\n'),
        ("%s %S %K %T", b'{"a": 1} 8 2 1704067200000'),
        ("%h", b"host=web1,empty="),
        ("100%% of %o", b"100% of 17"),
        ("%%%%", b"%%"),
        ("%%o", b"%o"),
        ("plain", b"plain"),
        ("", b""),
    ],
)
def test_format_string_reads_as_kcat_does(template: str, expected: bytes) -> None:
    """Letters after a percent sign stand for parts of the record; nothing is added."""
    assert shape.format_string(template)(PLACE, RECORD) == expected


def test_format_string_tells_null_by_its_length() -> None:
    """A null is empty and of length -1."""
    assert shape.format_string("[%v]%S[%k]%K")(PLACE, BARE) == b"[]-1[]-1"


@pytest.mark.parametrize("template", ["%q", "%v %z"])
def test_format_string_refuses_an_unknown_letter(template: str) -> None:
    """The message lists the known ones."""
    with pytest.raises(click.BadParameter, match="%k %K %s %v"):
        shape.format_string(template)


def test_format_string_refuses_a_lone_percent_sign_by_showing_it() -> None:
    """A sign at the end has no letter, and is text."""
    assert shape.format_string("5%")(PLACE, RECORD) == b"5%"
