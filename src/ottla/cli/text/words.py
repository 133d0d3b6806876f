"""Parses options that are not plain text: times, spans, sizes, positions in a log.

Each function is the `type` of an option. It raises click.BadParameter with the valid forms.
"""

import click

from ottla.base import quantities
from ottla.base.clock import local_now
from ottla.base.errors import OttlaError, WrongWords
from ottla.diagnosis.record_choice import Position, position_of
from ottla.security.principal import Principal, parse_principal

_PLAIN_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "0": "\0", "\\": "\\"}


def position(text: str) -> Position:
    """Parse `earliest`, `latest`, an offset, `-N` for the last N records, or a time."""
    try:
        return position_of(text, local_now())
    except WrongWords as error:
        raise click.BadParameter(error.message) from None


def moment(text: str) -> int:
    """Parse a time; return milliseconds since 1970."""
    time_ms = quantities.moment_ms(text, local_now())
    if time_ms is None:
        raise click.BadParameter(f"{text!r} is no time; write {quantities.MOMENT_FORMS}")
    return time_ms


def span(text: str | int) -> int:
    """Parse `30s` or `5m`; return milliseconds. A number (a default) is returned unchanged."""
    found = text if isinstance(text, int) else quantities.span_ms(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is no span of time; write {quantities.SPAN_FORMS}")
    return found


def interval(text: str | int) -> int:
    """Parse a span that must be greater than zero."""
    found = span(text)
    if not found:
        raise click.BadParameter(f"{text!r} is too short; write {quantities.SPAN_FORMS}")
    return found


def size(text: str | int) -> int:
    """Parse `500k`, `128MB` or `2Gi`; return bytes. A number (a default) is returned unchanged."""
    found = text if isinstance(text, int) else quantities.size_bytes(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is no size; write {quantities.SIZE_FORMS}")
    return found


def principal(text: str) -> Principal:
    """Parse a principal such as `User:alice`."""
    try:
        return parse_principal(text)
    except OttlaError as error:
        raise click.BadParameter(error.message) from None


def unescaped(text: str) -> str:
    r"""Return `text` with \t, \n, \r, \0, \\ and \xNN read as in C; other backslashes stay."""
    out: list[str] = []
    place = 0
    while place < len(text):
        following = text[place + 1 : place + 2]
        if text[place] != "\\" or following not in {*_PLAIN_ESCAPES, "x"}:
            out.append(text[place])
            place += 1
        elif following == "x":
            digits = text[place + 2 : place + 4]
            try:
                out.append(chr(int(digits, 16)))
            except ValueError:
                raise click.BadParameter(rf"\x{digits} needs two hexadecimal digits") from None
            place += 4
        else:
            out.append(_PLAIN_ESCAPES[following])
            place += 2
    return "".join(out)
