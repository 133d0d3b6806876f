"""Names of headers are bytes in a log and text in a table: one text for each, and back."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.lake.model.schema import header_name_bytes, header_name_text


def test_names_in_utf8_are_as_they_are() -> None:
    assert header_name_text(b"trace-id") == "trace-id"
    assert header_name_text("h\u00f6he".encode()) == "h\u00f6he"
    assert header_name_text(b"") == ""
    # The sign itself, as text that is not ours.
    assert header_name_text("\ufffd".encode()) == "\ufffd"


def test_a_name_that_looks_like_ours_is_told_apart() -> None:
    """Else it would be the text of another name."""
    assert header_name_text(b"\xff") == "\ufffdhex:ff"
    assert header_name_text("\ufffdhex:ff".encode()) == "\ufffdhex:efbfbd6865783a6666"
    assert header_name_bytes("\ufffdhex:efbfbd6865783a6666") == "\ufffdhex:ff".encode()


@given(st.binary(max_size=12) | st.text(max_size=6).map(str.encode))
def test_each_name_comes_back(name: bytes) -> None:
    """The text is valid, and belongs to this name alone."""
    text = header_name_text(name)
    assert text.encode().decode() == text
    assert header_name_bytes(text) == name
