"""Keys and values as a page shows them."""

import pytest

from ottla.base.ids import TopicPartition
from ottla.console.mask import parse_masks
from ottla.console.shown import PAGE_BYTES, ROW_BYTES, keeper, shown_content
from ottla.diagnosis.record_choice import condition_of
from ottla.record.codec import Record


@pytest.mark.parametrize(
    ("content", "form", "kind", "text"),
    [
        (None, "auto", "null", "null"),
        (b"", "auto", "empty", "empty"),
        (b"plain", "auto", "text", "plain"),
        (b'{"a":1}', "auto", "json", '{\n  "a": 1\n}'),
        (b'{"a":1}', "text", "text", '{"a":1}'),
        (b"not json", "json", "text", "not json"),
        (
            b"\xff\x00",
            "auto",
            "hex",
            "00000000  ff 00" + " " * 44 + "..",
        ),
        (b"ab", "hex", "hex", "00000000  61 62" + " " * 44 + "ab"),
        (b"\xffa", "text", "text", "\\xffa"),
        ("ü".encode(), "auto", "text", "ü"),
    ],
)
def test_a_whole_content(content: bytes | None, form: str, kind: str, text: str) -> None:
    shown = shown_content(content, form, PAGE_BYTES, whole=True)
    assert (shown.kind, shown.text, shown.is_cut) == (kind, text, False)


def test_a_large_content_is_cut_and_says_its_size() -> None:
    shown = shown_content(b"x" * 3_000_000, "auto", ROW_BYTES, whole=False)
    assert len(shown.text) == ROW_BYTES
    assert shown.note == "cut: 2.9 MiB in all"


@pytest.mark.parametrize("shift", range(4))
def test_a_cut_within_a_character_leaves_text(shift: int) -> None:
    content = b"x" * shift + "😀".encode() * 1000
    shown = shown_content(content, "auto", ROW_BYTES, whole=False)
    assert shown.kind == "text"
    assert shown.text.strip("x") == "😀" * len(shown.text.strip("x"))


def test_what_is_hidden_cannot_be_found() -> None:
    """A search must not answer whether a hidden value is the one that was typed."""
    rules = parse_masks("[[mask]]\nfields=['pin']").of("t")
    record = Record(0, 0, None, b'{"pin": "1234", "name": "A"}')
    name = TopicPartition("t", 0)
    assert keeper(rules, condition_of("value.pin=1234"), "auto")(name, record) is None
    assert keeper(rules, condition_of("1234"), "auto")(name, record) is None
    found = keeper(rules, condition_of("value.name=A"), "auto")(name, record)
    assert found is not None
    assert "1234" not in found.value.text
