"""`ottla audit verify`: whether an audit log is as its broker wrote it."""

import re
from collections.abc import Iterator
from pathlib import Path

import click

from ottla.cli.common import options
from ottla.cli.text.output import show_one
from ottla.diagnosis.audit_log import AuditVerdict, verify_audit
from ottla.security.audit.verification import Remark, Verified

_HASH = re.compile("[0-9a-f]{64}")
# The same as in other verify commands.
_DAMAGED = 3
_UNPROVEN = (
    "Not proven without --head: that nothing was cut off at the end together with the head file, "
    "and that the log was not written anew. Note the head elsewhere, and give it to --head later; "
    "the broker's own log has one every ten minutes."
)


@click.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="FILE|FOLDER")
@click.option("--head", metavar="HASH", help="The hash of a line that was noted elsewhere.")
@options.output
@click.pass_context
def verify(ctx: click.Context, path: Path, head: str | None, form: str) -> None:
    """Find lines that were removed, changed, inserted or moved.

    \b
    ottla audit verify ottla-data
    ottla audit verify ottla-data --head 9f3a...

    Exits with 3 where there is damage. With --head, the lines up to the one with that hash are
    proven to be those that were there when it was noted, and it says which are not.
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
    """The lines that the hash does not cover."""
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
