"""Records as JSON lines, as `ottla consume --json` shows and `ottla produce --json` reads them."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.cli.consume.shape import json_lines
from ottla.cli.produce.json_lines import JsonRecord, record_of
from ottla.record.codec import Record


@pytest.mark.parametrize("content", [None, b"", b"text", b"\xff\x00", "µ\n\t".encode()])
def test_what_is_shown_is_read_as_the_same_bytes(content: bytes | None) -> None:
    """As key, as value and in a header."""
    record = Record(7, 1_700_000_000_000, content, content, [("h", content), ("h", None)])
    line = json_lines(TopicPartition("t", 2), record)
    assert record_of(line, 1) == JsonRecord(
        content, content, [("h", content), ("h", None)], 1_700_000_000_000, 2
    )


def test_a_value_is_enough() -> None:
    """The producer chooses the rest; -1 is the timestamp of a record that has none."""
    assert record_of(b'{"value": null, "timestamp": -1}', 1) == JsonRecord(
        None, None, [], None, None
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"hello", "it is no JSON"),
        (b"\xff", "it is no JSON"),
        (b"[]", "it is no object"),
        (b'{"key": "a"}', "it has no value"),
        (b'{"value": 5}', "value is no string"),
        (b'{"value": "a", "kye": "b"}', "there is no field 'kye'"),
        (b'{"value": "a", "value_base64": "YQ=="}', "it has value and value_base64"),
        (b'{"value_base64": "?"}', "value_base64 is no base64"),
        (b'{"value": "\\ud800"}', "no text that UTF-8 can hold"),
        (b'{"value": "a", "headers": [["h"]]}', "headers is no list"),
        (b'{"value": "a", "headers": "h"}', "headers is no list"),
        (b'{"value": "a", "partition": "1"}', "partition is no whole number"),
        (b'{"value": "a", "timestamp": true}', "timestamp is no whole number"),
    ],
)
def test_a_line_that_is_no_record_says_why(line: bytes, said: str) -> None:
    """And which line it is."""
    with pytest.raises(OttlaError) as refused:
        record_of(line, 12)
    assert refused.value.code is ErrorCode.INVALID_RECORD
    assert refused.value.message.startswith("line 12 is no record")
    assert said in refused.value.message
