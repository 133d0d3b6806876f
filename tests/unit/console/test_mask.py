"""Rules that hide parts of records."""

import json

import pytest

from ottla.base.errors import OttlaError
from ottla.console.mask import HIDDEN, applied, parse_masks
from ottla.record.codec import Record

RULES = r"""
[[mask]]
topics = "customers|orders-.*"
fields = ["card.number", "people.*.email"]
headers = ["authorization"]

[[mask]]
topics = "notes"
pattern = '\b\d{4}\b'
"""


def masked(topic: str, record: Record) -> Record:
    return applied(parse_masks(RULES).of(topic), record)


def test_fields_of_json_are_hidden_wherever_the_path_leads() -> None:
    value = {
        "card": {"number": "4111", "valid": "12/30"},
        "people": [{"email": "a@b", "name": "A"}, {"email": "c@d"}],
    }
    found = masked("orders-eu", Record(0, 0, None, json.dumps(value).encode()))
    assert found.value is not None
    assert json.loads(found.value) == {
        "card": {"number": HIDDEN, "valid": "12/30"},
        "people": [{"email": HIDDEN, "name": "A"}, {"email": HIDDEN}],
    }


def test_a_value_without_these_fields_stays_byte_for_byte() -> None:
    value = b'{ "other" : 1.0 }'
    assert masked("customers", Record(0, 0, None, value)).value == value


@pytest.mark.parametrize(
    "value",
    [b"4111 1111", b"\xff\x00", b'"4111"', b"{broken", b"[" * 100_000, b"{}" + b" " * 2**20],
)
def test_what_cannot_be_taken_apart_is_hidden_whole(value: bytes) -> None:
    assert masked("customers", Record(0, 0, value, value)) == Record(
        0, 0, HIDDEN.encode(), HIDDEN.encode()
    )


def test_headers_are_hidden_by_name() -> None:
    record = Record(0, 0, None, None, [("authorization", b"secret"), ("trace", b"1")])
    found = masked("customers", record)
    assert found.headers == [("authorization", HIDDEN.encode()), ("trace", b"1")]
    assert found.value is None


def test_a_pattern_is_hidden_in_key_value_and_headers() -> None:
    record = Record(0, 0, b"k 1234", b"pin 1234 of 99999", [("h", b"1234"), ("n", None)])
    hidden = HIDDEN.encode()
    assert masked("notes", record) == Record(
        0, 0, b"k " + hidden, b"pin " + hidden + b" of 99999", [("h", hidden), ("n", None)]
    )


def test_other_topics_are_untouched() -> None:
    record = Record(0, 0, b"1234", b"1234", [("authorization", b"x")])
    assert masked("other", record) == record
    assert masked("my-customers", record) == record


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[mask]", "no TOML"),
        ("[[masks]]\nfields=['a']", "may have"),
        ("[[mask]]\nfield=['a']", "'field'"),
        ("[[mask]]\ntopics='a'", "hides nothing"),
        ("[[mask]]\nfields='a'", "no list of texts"),
        ("[[mask]]\npattern='('", "no regular expression"),
        ("[[mask]]\npattern=3", "no text"),
        ("mask = 3", "may have"),
        ("mask = [3]", "no table"),
    ],
)
def test_a_wrong_file_is_refused(text: str, said: str) -> None:
    """A rule with a mistake must not silently hide nothing."""
    with pytest.raises(OttlaError, match=said):
        parse_masks(text)
