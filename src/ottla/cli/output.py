"""Answers as tables for people or as JSON for programs."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click


def show(
    form: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, empty: str = ""
) -> None:
    """Print `rows`: as JSON all they hold, as a table the `columns`. `empty` is said for none."""
    if form == "json":
        click.echo(json.dumps(list(rows), indent=2, default=str))
        return
    if not rows:
        click.echo(empty, err=True)
        return
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    titles = [column.replace("_", " ") for column in columns]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    numeric = [all(_is_number(row.get(column)) for row in rows) for column in columns]
    click.secho(_line(titles, widths, numeric), bold=True)
    click.echo("\n".join(_line(line, widths, numeric) for line in cells))


def show_one(form: str, answer: Mapping[str, Any]) -> None:
    """Print one answer: as JSON, or as lines of name and value."""
    if form == "json":
        click.echo(json.dumps(answer, indent=2, default=str))
        return
    width = max(map(len, answer), default=0)
    for name, value in answer.items():
        click.echo(f"{name.replace('_', ' '):<{width}}  {_cell(value)}")


def show_title(text: str) -> None:
    """A line above a table."""
    click.secho(text, bold=True)


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    """Columns two blanks apart, numbers to the right."""
    return "  ".join(
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
