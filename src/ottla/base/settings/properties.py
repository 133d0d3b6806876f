"""Reads the text of a `server.properties` file: Java's properties notation."""

from collections.abc import Mapping

from ottla.base.errors import ErrorCode, OttlaError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SPACE = " \t\f"


def parse_properties(text: str) -> dict[str, str]:
    r"""Return the names and values in `text`; a later line wins over an earlier one.

    Comments (`#`, `!`), continued lines, the separators `=`, `:` and white space, and the escapes
    `\t \n \r \f \uXXXX` are as in java.util.Properties. Raises OttlaError(INVALID_CONFIG) with the
    line number for a broken `\u` escape.
    """
    properties: dict[str, str] = {}
    for number, line in _logical_lines(text):
        try:
            name, value = _split(line)
        except ValueError:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"Line {number} holds a broken \\u escape; write four hexadecimal digits after it",
            ) from None
        properties[name] = value
    return properties


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Return the lines with content; a line that ends in an odd number of backslashes continues."""
    lines: list[tuple[int, str]] = []
    pending, first = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.lstrip(_SPACE)
        if not pending:
            first = number
            if not line or line[0] in "#!":
                continue
        slashes = len(line) - len(line.rstrip("\\"))
        if slashes % 2:
            pending += line[:-1]
            continue
        lines.append((first, pending + line))
        pending = ""
    if pending:
        lines.append((first, pending))
    return lines


def _split(line: str) -> tuple[str, str]:
    position = 0
    while position < len(line) and line[position] not in "=:" + _SPACE:
        position += 2 if line[position] == "\\" else 1
    rest = line[position:].lstrip(_SPACE)
    if rest[:1] in {"=", ":"}:
        rest = rest[1:].lstrip(_SPACE)
    return _unescape(line[:position]), _unescape(rest)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    characters = iter(text)
    for character in characters:
        if character != "\\":
            out.append(character)
            continue
        escaped = next(characters, "")
        if escaped == "u":
            digits = "".join(next(characters, "") for _ in range(4))
            out.append(chr(int(digits, 16)))
        else:
            out.append(_ESCAPES.get(escaped, escaped))
    return "".join(out)


def properties_text(properties: Mapping[str, str]) -> str:
    """Return the lines of a file that `parse_properties` reads back unchanged."""
    return "".join(f"{name}={_escape(value)}\n" for name, value in properties.items())


def _escape(value: str) -> str:
    escaped = value.replace("\\", "\\\\")
    for letter, character in _ESCAPES.items():
        escaped = escaped.replace(character, f"\\{letter}")
    # Other characters that end a line.
    escaped = "".join(
        each if each.splitlines() == [each] else f"\\u{ord(each):04x}" for each in escaped
    )
    return f"\\{escaped}" if escaped.startswith(" ") else escaped
