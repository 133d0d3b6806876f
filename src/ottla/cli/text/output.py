"""Shows answers as tables for people or as JSON for programs. A row of a table is one line."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

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
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    click.secho(_line(titles, widths, numeric), bold=True)
    for line in cells:
        click.echo(_line(line, widths, numeric))


def show_one(form: str, answer: Mapping[str, Any]) -> None:
    """Print one answer as JSON, or as lines of name and value."""
    if form == "json":
        click.echo(json.dumps(answer, indent=2, default=str))
        return
    indent = max(map(len, answer), default=0) + len(_GAP)
    for name, value in answer.items():
        click.echo(f"{name.replace('_', ' '):<{indent}}{_cell(value)}".rstrip())


def show_title(text: str) -> None:
    """Print the title of the table that follows."""
    click.secho(text, bold=True)


def _line(cells: Sequence[str], widths: Iterable[int], numeric: Iterable[bool]) -> str:
    """Return a row with two blanks between columns; numbers are right-aligned."""
    return _GAP.join(
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, numeric, strict=True)
    ).rstrip()


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
