"""`ottla audit`: shows and verifies audit logs."""

import json
import re
from collections import deque
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

import click

from ottla.cli.common import options
from ottla.cli.text.output import show, show_one
from ottla.diagnosis.audit_log import AuditVerdict, audit_lines, verify_audit
from ottla.security.audit.chain import EVENTS, Line
from ottla.security.audit.verification import Remark, Verified
from ottla.security.names import AclResource, title


@click.group()
def audit() -> None:
    """Read and verify audit logs: denials, logins, changes.

    \b
    ottla audit show ottla-data --principal User:alice
    ottla audit verify ottla-data
    ottla audit verify ottla-data --head 9f3a...

    Needs no broker, and only reads. A broker with an authorizer or a SASL listener writes one.
    """  # noqa: D301


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


@audit.command("show")
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


_HASH = re.compile("[0-9a-f]{64}")
# The exit code for damage, as in other verify commands.
_DAMAGED = 3
_UNPROVEN = (
    "Not proven without --head: that nothing was cut off at the end together with the head file, "
    "and that the log was not written anew. Note the head elsewhere, and give it to --head later; "
    "the broker's own log has one every ten minutes."
)


@audit.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="FILE|FOLDER")
@click.option("--head", metavar="HASH", help="The hash of a line that was noted elsewhere.")
@options.output
@click.pass_context
def verify(ctx: click.Context, path: Path, head: str | None, form: str) -> None:
    """Find lines that were removed, changed, inserted or moved.

    \b
    ottla audit verify ottla-data
    ottla audit verify ottla-data --head 9f3a...

    Exits with 3 if there is damage. With --head, it proves that the lines up to the one with that
    hash have not changed since the hash was noted, and says which lines that does not cover.
    """  # noqa: D301
    if head is not None:
        head = head.strip().lower()
        if not _HASH.fullmatch(head):
            raise click.BadParameter("a hash has 64 hexadecimal digits", param_hint="--head")
    verdict = verify_audit(path, head)
    if form == "json":
        chains = [_plain(chain) for chain in verdict.chains]
        show_one("json", {"intact": verdict.intact, "chains": chains})
    else:
        for chain in verdict.chains:
            _show(chain)
        _show_anchor(verdict)
    if not verdict.intact:
        ctx.exit(_DAMAGED)


def _plain(chain: Verified) -> dict[str, object]:
    fields = {**chain._asdict(), "intact": chain.intact}
    return {**fields, "problems": _texts(chain.problems), "notes": _texts(chain.notes)}


def _texts(remarks: tuple[Remark, ...]) -> list[str]:
    return [str(each) for each in remarks]


def _show(chain: Verified) -> None:
    for note in chain.notes:
        click.secho(str(note), fg="yellow")
    for problem in chain.problems:
        click.secho(str(problem), fg="red")
    verdict = "intact" if chain.intact else f"DAMAGED: {len(chain.problems)} problem(s)"
    lines = f"lines {chain.first} to {chain.last}, head {chain.head}" if chain.last else "no lines"
    click.echo(f"broker {chain.broker}: {verdict}, {lines}")


def _show_anchor(verdict: AuditVerdict) -> None:
    if verdict.anchor is None:
        click.echo(_UNPROVEN)
        return
    chain = verdict.anchored
    if chain is None:
        text = "it was changed or cut off, the log written anew, or its file removed by retention"
        click.secho(f"no line has the hash {verdict.anchor}: {text}", fg="red")
        return
    line = chain.anchor_line
    proven = f"lines {chain.proven_from} to {line} are those that were there when it was noted"
    click.echo(f"line {line} of broker {chain.broker} has the hash: {proven}")
    click.echo("Not proven: " + "; ".join(_unproven(verdict, chain)))


def _unproven(verdict: AuditVerdict, chain: Verified) -> Iterator[str]:
    """Yield phrases that say what the hash given with `--head` does not prove."""
    if chain.first < chain.proven_from:
        yield f"lines before line {chain.proven_from}, where the chain is broken"
    if chain.retention_line > chain.anchor_line:
        yield (
            f"that retention removed the lines before line {chain.first}: line"
            f" {chain.retention_line} says so, which came later than the hash"
        )
    yield f"lines behind line {chain.anchor_line}"
    others = [str(each.broker) for each in verdict.chains if each is not chain]
    if others:
        yield f"the lines of other brokers ({', '.join(others)})"
