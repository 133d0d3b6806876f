"""Conditions on records, and positions in a log."""

import pytest

from ottla.base.errors import WrongWords
from ottla.diagnosis.record_choice import condition_of
from ottla.record.codec import Record

RECORD = Record(
    7,
    1_000,
    b"order-42",
    b'{"city": "La Paz", "n": 7, "ok": true, "items": [{"id": "a"}, {"id": "b"}]}',
    [("trace", b"ab12"), ("empty", None)],
)


@pytest.mark.parametrize(
    "text",
    [
        "key=order-42",
        "key~^order-",
        "value.n=7",
        "value.ok=true",
        "value.city='La Paz'",
        "value.items.1.id=b",
        "value.items.*.id~^b$",
        "header.trace=ab12",
        "header~b1",
        "key!=order-4 value.n!~^8",
        "La Paz",
        "order-42",
        "trace",
        '"id": "a"',
    ],
)
def test_a_condition_is_met(text: str) -> None:
    condition = condition_of(text)
    assert condition is not None
    assert condition(RECORD)


@pytest.mark.parametrize(
    "text",
    [
        "key=order-4",
        "value.n=8",
        "value.missing=7",
        "value.city.deeper=x",
        "header.trace=ab",
        "header.other~.",
        "key=order-42 value.n=8",
        "key!=order-42",
        "paz",
        "value.ok=True",
    ],
)
def test_a_condition_is_not_met(text: str) -> None:
    condition = condition_of(text)
    assert condition is not None
    assert not condition(RECORD)


def test_a_null_value_and_one_that_is_no_json_have_no_fields() -> None:
    condition = condition_of("value.a=1")
    assert condition is not None
    for value in (None, b"", b"{", b"\xff", b"[" * 100_000):
        assert not condition(Record(0, 0, None, value))


def test_an_empty_text_is_no_condition() -> None:
    assert condition_of("  ") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("key=a 'b", "No closing quotation"),
        ("key=a b", "no part of a condition"),
        ("value~(", "no regular expression of RE2"),
    ],
)
def test_a_wrong_condition_says_what_to_write(text: str, said: str) -> None:
    with pytest.raises(WrongWords, match=said):
        condition_of(text)


def test_a_pattern_that_others_need_ages_for_is_matched_at_once() -> None:
    """RE2 needs time linear in the text; Python's `re` would not end."""
    condition = condition_of("value~^(a+)+$")
    assert condition is not None
    assert not condition(Record(0, 0, None, b"a" * 100_000 + b"b"))
