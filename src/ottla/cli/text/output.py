"""Shows answers as tables for people or as JSON for programs.

On a terminal a table is never wider than the terminal. Its widest text columns are wrapped; if that
is not enough, each row is shown as lines of name and value. Output to a pipe or a file is not
wrapped, so that a program finds each row on one line.
"""

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from ottla.base.errors import OttlaError

# Text columns are wrapped to the first width at least; to the second only if all else is not
# enough.
_COMFORTABLE = 34
_NARROWEST = 14
_GAP = "  "


def show(
    form: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, empty: str = ""
) -> None:
    """Print `rows`, or `empty` if there are none. A table has only `columns`, JSON all fields."""
    if form == "json":
        click.echo(json.dumps(list(rows), indent=2, default=str))
        return
    if not rows:
        click.echo(empty, err=True)
        return
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    titles = [column.replace("_", " ") for column in columns]
    numeric = [all(_is_number(row.get(column)) for row in rows) for column in columns]
    natural = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    widths = fitted(natural, numeric, terminal_width())
    if widths is None:
        _show_apart(titles, cells)
        return
    click.secho("\n".join(_lines(titles, widths, numeric)), bold=True)
    for line in cells:
        click.echo("\n".join(_lines(line, widths, numeric)))


def terminal_width() -> int | None:
    """Return the terminal's width in columns; None if the output is not a terminal."""
    if "COLUMNS" not in os.environ and not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def fitted(natural: Sequence[int], numeric: Sequence[bool], width: int | None) -> list[int] | None:
    """Return column widths that fit into `width`; None if that is impossible.

    The widest text columns are narrowed first. The first column is narrowed last, because it has
    the name that readers look for and copy. Numbers are never wrapped.
    """
    widths = list(natural)
    if width is None:
        return widths
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - width
    while excess > 0:
        widest = _next_to_give_way(widths, numeric)
        if widest is None:
            return None
        widths[widest] -= 1
        excess -= 1
    return widths


def _next_to_give_way(widths: Sequence[int], numeric: Sequence[bool]) -> int | None:
    """Return the text column to narrow next; None if all have their least width."""
    for least in (_COMFORTABLE, _NARROWEST):
        texts = [i for i, number in enumerate(numeric) if not number and widths[i] > least]
        if texts:
            return max(texts, key=lambda i: (i > 0, widths[i]))
    return None


def _show_apart(titles: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    """Print each row as lines of name and value; an empty line separates rows."""
    for number, line in enumerate(cells):
        if number:
            click.echo()
        _show_named(zip(titles, line, strict=True))


def show_one(form: str, answer: Mapping[str, Any]) -> None:
    """Print one answer as JSON, or as lines of name and value."""
    if form == "json":
        click.echo(json.dumps(answer, indent=2, default=str))
        return
    _show_named((name.replace("_", " "), _cell(value)) for name, value in answer.items())


def show_title(text: str) -> None:
    """Print the title of the table that follows."""
    click.secho(text, bold=True)


def show_silent(silent: Mapping[int, OttlaError]) -> None:
    """Name the brokers that did not answer, so that the result lacks what they know."""
    for broker, error in silent.items():
        click.echo(f"broker {broker} did not answer: {error.message}", err=True)


def _show_named(pairs: Iterable[tuple[str, str]]) -> None:
    """Print lines of name and value, with aligned values."""
    pairs = list(pairs)
    indent = max((len(name) for name, _ in pairs), default=0) + len(_GAP)
    width = terminal_width()
    for name, value in pairs:
        room = None if width is None else max(width - indent, _NARROWEST)
        first, *rest = _wrapped(value, room)
        click.echo(f"{name:<{indent}}{first}".rstrip())
        for line in rest:
            click.echo(" " * indent + line)


def _lines(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> list[str]:
    """Return a row with two blanks between columns, numbers right-aligned; wrapped if needed."""
    columns = [_wrapped(cell, width) for cell, width in zip(cells, widths, strict=True)]
    lines = []
    for number in range(max(map(len, columns))):
        parts = [column[number] if number < len(column) else "" for column in columns]
        lines.append(
            _GAP.join(
                part.rjust(width) if right else part.ljust(width)
                for part, width, right in zip(parts, widths, numeric, strict=True)
            ).rstrip()
        )
    return lines


def _wrapped(text: str, width: int | None) -> list[str]:
    if width is None or len(text) <= width:
        return [text]
    # A word longer than the column, such as a topic's name, is broken, so that nothing is lost.
    return textwrap.wrap(text, width, break_on_hyphens=False) or [text]


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _cell(value: Any) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case int():
            return str(value)
        case float():
            return f"{value:,.2f}"
        case list() | tuple() | set() | frozenset():
            return ", ".join(_cell(item) for item in value) or "-"
        case _:
            return str(value)
