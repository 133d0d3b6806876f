"""`ottla audit show`: the lines of an audit log."""

import json
from collections import deque
from difflib import get_close_matches
from pathlib import Path

import click

from ottla.cli.common import options
from ottla.cli.text.output import show
from ottla.diagnosis.audit_log import audit_lines
from ottla.security.audit.chain import EVENTS, Line
from ottla.security.names import AclResource, title

_TYPES = [title(kind.name) for kind in AclResource if kind > AclResource.ANY]
_COLUMNS = [
    "line",
    "time",
    "event",
    "principal",
    "host",
    "api",
    "operation",
    "resource",
    "outcome",
    "rule",
    "detail",
]


@click.command("show")
@click.argument("path", type=click.Path(path_type=Path), metavar="FILE|FOLDER")
@click.option(
    "--event",
    type=click.Choice(EVENTS),
    metavar="WORD",
    help="Such lines only: denied, changed ...",
)
@click.option("--principal", metavar="USER", help="Lines of this principal only.")
@click.option("--resource", metavar="NAME", help="Lines of this resource only: Topic:flights.")
@click.option(
    "-n", "count", type=click.IntRange(min=1), default=None, help="The last lines only, so many."
)
@options.output
def show_lines(
    path: Path,
    event: str | None,
    principal: str | None,
    resource: str | None,
    count: int | None,
    form: str,
) -> None:
    """Show the lines of an audit log; -o json shows them whole.

    \b
    ottla audit show ottla-data -n 20
    ottla audit show ottla-data --event denied --principal User:bob
    ottla audit show ottla-data --resource Topic:flights -o json
    """  # noqa: D301
    _check(principal, resource)
    wanted = {"event": event, "principal": principal, "resource": resource}
    chosen = {name: value for name, value in wanted.items() if value is not None}
    lines = deque(
        (line for line in audit_lines(path) if _has(line, chosen)),
        maxlen=count,
    )
    if form == "json":
        show(form, [dict(line.fields) for line in lines], _COLUMNS)
        return
    show(form, [_row(line) for line in lines], _COLUMNS, empty="no such lines")


def _check(principal: str | None, resource: str | None) -> None:
    """Refuse filters that no line can match. Raises BadParameter."""
    if principal is not None and ":" not in principal:
        raise click.BadParameter(
            f"{principal} lacks its type: write User:{principal}", param_hint="--principal"
        )
    kind, colon, name = (resource or "").partition(":")
    if resource is None or (colon and kind in _TYPES):
        return
    near = get_close_matches(kind, _TYPES, n=1) if colon else ["Topic"]
    meant = f"write {near[0] if near else 'Topic'}:{name if colon else resource}"
    raise click.BadParameter(
        f"{resource} is none of TYPE:NAME: {meant}; types are {', '.join(_TYPES)}",
        param_hint="--resource",
    )


def _has(line: Line, chosen: dict[str, str]) -> bool:
    return all(line.fields.get(name) == value for name, value in chosen.items())


def _row(line: Line) -> dict[str, str]:
    fields = line.fields
    row = {name: str(fields.get(name) or "") for name in _COLUMNS}
    more = fields.get("more")
    detail = fields.get("cause") or (json.dumps(fields["detail"]) if "detail" in fields else "")
    row["detail"] = f"and {more:,} more in {fields.get('seconds')} s" if more else str(detail)
    row["outcome"] = str(fields.get("error") or row["outcome"])
    return {name: _printable(value) for name, value in row.items()}


def _printable(text: str) -> str:
    """Escape characters that a client chose, so that they cannot control the terminal."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
