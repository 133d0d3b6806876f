"""`ottla dlq redrive`: sends the records of dead letters again."""

from typing import Any

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.quantities import counted
from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.common.connect import run, with_admin
from ottla.cli.dlq.letters import choosing, chosen_by, is_table, read_letters
from ottla.cli.lake.ledgers import import_lake
from ottla.cli.text.output import show_one
from ottla.operations import dead_letters
from ottla.operations.dead_letters import Redriven


@click.command()
@click.argument("source", metavar="TOPIC|TABLE", shell_complete=topics)
@choosing
@click.option(
    "--to",
    default=None,
    metavar="TOPIC",
    shell_complete=topics,
    help="Send to this topic, not to their own.",
)
@click.option("--again", is_flag=True, help="Also those that were redriven before.")
@options.yes
@options.bootstrap
@options.output
def redrive(
    source: str,
    to: str | None,
    again: bool,
    yes: bool,
    bootstrap: str,
    form: str,
    **given: Any,
) -> None:
    """Send the records of dead letters to their topics again.

    \b
    ottla dlq redrive dlq.tasks --yes
    ottla dlq redrive /lake/flights --stage decode.value --to flights.mended --yes

    Records and marks are committed in one transaction: killed at any step it sends none twice.
    Letters that were redriven are passed over; refused, where no other are chosen.
    """  # noqa: D301
    chosen = chosen_by(given)
    found = list(filter(chosen, read_letters(source, bootstrap)))
    due = [one for one in found if again or not one.redriven]
    if not found:
        raise OttlaError(ErrorCode.RESOURCE_NOT_FOUND, f"{source} holds no such dead letters")
    if not due:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"{counted(len(found), 'dead letter')} of {source} were redriven before; send them "
            "once more with --again",
        )
    if not yes:
        where = to or "their own topics"
        options.confirm(f"send the records of {counted(len(due), 'dead letter')} to {where}?")
    if is_table(source):
        import_lake()
        from ottla.lake.write.redrive import redrive_table  # noqa: PLC0415  # An extra.

        done: Redriven = run(redrive_table(bootstrap, source, chosen, to=to, again=again))
    else:
        done = with_admin(
            bootstrap,
            lambda admin: dead_letters.redrive(
                admin, bootstrap, source, chosen, to=to, again=again
            ),
        )
    if form == "json":
        show_one("json", {"sent": done.sent, "skipped": done.skipped, "gone": done.gone})
        return
    click.echo(f"{counted(done.sent, 'record')} sent again")
    if done.skipped:
        click.echo(f"{counted(done.skipped, 'letter')} passed over: redriven before")
    if done.gone:
        gone = f"{counted(done.gone, 'letter')} without content, whose records are gone"
        click.secho(gone, fg="yellow")
