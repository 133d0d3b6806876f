"""Records as a page shows them: masked, cut to what fits, as text, JSON or hexadecimal. Pure."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ottla.base.ids import TopicPartition
from ottla.base.quantities import size_words
from ottla.console.mask import Mask, applied
from ottla.diagnosis.record_choice import Condition
from ottla.record.codec import Record

FORMS = ("auto", "text", "json", "hex")
# In a list, and on the page of one record.
ROW_BYTES = 400
PAGE_BYTES = 64 << 10
_ROW_HEADERS, _PAGE_HEADERS = 5, 500
_HEX_LINE = 16
# Characters that a page would drop, or that change the direction of the text around them; their
# escapes are shown instead.
_VISIBLE = {
    code: f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    for code in (*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F),
                 *range(0x2066, 0x206A))
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ShownContent:
    """A key or value: `text` of its first bytes, and a note if that is not all.

    `kind` says what it is: null, empty, text, json or hex.
    """

    kind: str
    text: str
    size: int
    is_cut: bool

    @property
    def note(self) -> str:
        """Return how much of it is not shown."""
        return f"cut: {size_words(self.size)} in all" if self.is_cut else ""


@dataclass(frozen=True, slots=True)
class ShownRecord:
    """A record for a page. `headers_left` is the number of headers that are not shown."""

    key: ShownContent
    value: ShownContent
    headers: tuple[tuple[str, ShownContent], ...]
    headers_left: int


def keeper(
    rules: Sequence[Mask], condition: Condition | None, form: str, *, whole: bool = False
) -> Callable[[TopicPartition, Record], ShownRecord | None]:
    """Return the function that makes records ready to show; None for those that do not match.

    Masks come first: what is hidden cannot be searched for. `whole`: for a page of one record.
    """

    def keep(_: TopicPartition, record: Record) -> ShownRecord | None:
        visible = applied(rules, record)
        if condition is not None and not condition(visible):
            return None
        return shown_record(visible, form, whole=whole)

    return keep


def shown_record(record: Record, form: str, *, whole: bool) -> ShownRecord:
    """Return what a page shows of a record."""
    most = PAGE_BYTES if whole else ROW_BYTES
    headers = record.headers
    shown = headers[: _PAGE_HEADERS if whole else _ROW_HEADERS]
    return ShownRecord(
        shown_content(record.key, form, most, whole=whole),
        shown_content(record.value, form, most, whole=whole),
        tuple(
            (
                name[:ROW_BYTES].translate(_VISIBLE),
                shown_content(content, "auto", ROW_BYTES, whole=False),
            )
            for name, content in shown
        ),
        len(headers) - len(shown),
    )


def shown_content(content: bytes | None, form: str, most: int, *, whole: bool) -> ShownContent:
    """Return the first `most` bytes of a key or value in a form; `whole` spreads it over lines."""
    if content is None:
        return ShownContent("null", "null", 0, is_cut=False)
    if not content:
        return ShownContent("empty", "empty", 0, is_cut=False)
    size, is_cut = len(content), len(content) > most
    first = content[:most]
    if form in ("auto", "json") and whole and not is_cut:
        indented = _indented(first)
        if indented is not None:
            return ShownContent("json", indented.translate(_VISIBLE), size, is_cut=False)
    text = _text(first, is_cut=is_cut)
    if form == "hex" or (form != "text" and text is None):
        shown = _dump(first) if whole else first[: most // 4].hex(" ")
        return ShownContent("hex", shown, size, is_cut=is_cut or (not whole and size > most // 4))
    if text is None:
        text = first.decode("utf-8", "backslashreplace")
    return ShownContent("text", text.translate(_VISIBLE), size, is_cut=is_cut)


def _text(content: bytes, *, is_cut: bool) -> str | None:
    """Return the text; None if it is not UTF-8. A cut may divide the last character."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        is_last = is_cut and error.start >= len(content) - 3
        return content[: error.start].decode("utf-8") if is_last else None


def _indented(content: bytes) -> str | None:
    try:
        return json.dumps(json.loads(content), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


def _dump(content: bytes) -> str:
    """Return lines of offset, bytes and characters."""
    lines = []
    for start in range(0, len(content), _HEX_LINE):
        piece = content[start : start + _HEX_LINE]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
        lines.append(f"{start:08x}  {piece.hex(' '):<{_HEX_LINE * 3}} {letters}")
    return "\n".join(lines)
