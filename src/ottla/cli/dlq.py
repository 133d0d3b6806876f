"""`ottla dlq`: dead letters of topics and of tables."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.quantities import counted
from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.common.connect import with_admin
from ottla.cli.lake.arguments import import_lake
from ottla.cli.text.output import show, show_one
from ottla.operations import dead_letters
from ottla.operations.dead_letters import FoundLetter, Redriven, letters_of


@click.group()
def dlq() -> None:
    """List dead letters, show them, send their records again."""


Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--stage", default=None, help="Only those of a stage, such as decode.value."),
    click.option("--from-topic", default=None, help="Only those of records of this topic."),
    click.option("--partition", type=int, default=None, help="Only those of this partition."),
    click.option("--offset", type=int, default=None, help="Only that of this record."),
    click.option("--matching", default=None, metavar="TEXT", help="Only errors with this text."),
)


def choosing(command: Command) -> Command:
    """Add the options that select letters; partition and offset are those of the failed record."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def chosen_by(given: dict[str, Any]) -> Callable[[FoundLetter], bool]:
    """Return a function that says whether the options select a letter."""

    def is_chosen(one: FoundLetter) -> bool:
        letter = one.letter
        wanted = (
            (given["stage"], letter.stage),
            (given["from_topic"], letter.topic),
            (given["partition"], letter.partition),
            (given["offset"], letter.offset),
        )
        text = given["matching"]
        return all(want is None or want == has for want, has in wanted) and (
            text is None or text in letter.message
        )

    return is_chosen


def is_table(source: str) -> bool:
    """Whether the source is a table, as a path or URL. A topic's name cannot have a slash."""
    return "/" in source or Path(source).is_dir()


def read_letters(source: str, bootstrap: str) -> list[FoundLetter]:
    """Return all letters of a topic or of a table."""
    if is_table(source):
        import_lake()
        from ottla.lake.write.dead_letters import letters_of_table  # noqa: PLC0415  # An extra.

        return letters_of_table(source)
    return with_admin(bootstrap, lambda admin: letters_of(admin, bootstrap, source))


_COLUMNS = ["letter", "topic", "partition", "offset", "stage", "deliveries", "state", "error"]
_SUMMARY = ["topic", "stage", "error", "letters", "redriven"]


@dlq.command("list")
@click.argument("source", metavar="TOPIC|TABLE", shell_complete=topics)
@choosing
@click.option("--summary", is_flag=True, help="Count letters by topic, stage and error.")
@options.bootstrap
@options.output
def list_(source: str, summary: bool, bootstrap: str, form: str, **given: Any) -> None:
    """List the dead letters of a topic, or of a table of the lake.

    \b
    ottla dlq list dlq.tasks
    ottla dlq list /lake/flights --stage decode.value
    ottla dlq list dlq.tasks --summary
    """  # noqa: D301
    found = list(filter(chosen_by(given), read_letters(source, bootstrap)))
    if summary:
        kinds = Counter((one.letter.topic, one.letter.stage, one.letter.message) for one in found)
        done = Counter(
            (one.letter.topic, one.letter.stage, one.letter.message)
            for one in found
            if one.redriven
        )
        rows: list[dict[str, Any]] = [
            dict(zip(_SUMMARY, (*kind, count, done[kind]), strict=True))
            for kind, count in kinds.most_common()
        ]
        show(form, rows, _SUMMARY, empty="no dead letters")
        return
    rows = [
        {
            "letter": one.place,
            "topic": one.letter.topic,
            "partition": one.letter.partition,
            "offset": one.letter.offset,
            "stage": one.letter.stage,
            "deliveries": one.letter.delivery_count,
            "state": "redriven" if one.redriven else "dead",
            "error": one.letter.message,
        }
        for one in found
    ]
    show(form, rows, _COLUMNS, empty="no dead letters")


@dlq.command()
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
    source: str, to: str | None, again: bool, yes: bool, bootstrap: str, form: str, **given: Any
) -> None:
    """Send the records of dead letters to their topics again.

    \b
    ottla dlq redrive dlq.tasks --yes
    ottla dlq redrive /lake/flights --stage decode.value --to flights.mended --yes

    Records and marks are committed in one transaction: killed at any step it sends no record twice.
    Letters that were redriven before are skipped; if there are no others, the command fails.
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
        from ottla.lake.write.dead_letters import redrive_table  # noqa: PLC0415  # An extra.

        done: Redriven = asyncio.run(redrive_table(bootstrap, source, chosen, to=to, again=again))
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


@dlq.command("show")
@click.argument("source", metavar="TOPIC|TABLE", shell_complete=topics)
@choosing
@options.bootstrap
@options.output
def show_letters(source: str, bootstrap: str, form: str, **given: Any) -> None:
    """Show dead letters: cause, key, value and headers.

    \b
    ottla dlq show dlq.tasks --partition 4 --offset 1207
    ottla dlq show /lake/flights --matching 'no JSON' -o json
    """  # noqa: D301
    found = list(filter(chosen_by(given), read_letters(source, bootstrap)))
    if not found:
        raise OttlaError(
            ErrorCode.RESOURCE_NOT_FOUND,
            f"no such dead letter: `ottla dlq list {source}` names those that are there",
        )
    for place, one in enumerate(found):
        if place and form == "table":
            click.echo()
        show_one(form, _fields(one))


def _fields(one: FoundLetter) -> dict[str, Any]:
    letter = one.letter
    return {
        "letter": one.place,
        "state": "redriven" if one.redriven else "dead",
        "record": f"{letter.topic}-{letter.partition}@{letter.offset}",
        "refused by": letter.group,
        "stage": letter.stage,
        "error": letter.message,
        "deliveries": letter.delivery_count,
        "schema id": letter.schema_id,
        "timestamp_ms": letter.timestamp_ms,
        "written_ms": one.written_ms,
        "key": _text(one.key),
        "value": _text(one.value),
        "headers": {name: _text(value) for name, value in one.headers},
    }


def _text(content: bytes | None) -> str | None:
    """Return bytes as text, or in hexadecimal if they are not text."""
    if content is None:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return f"hex:{content.hex()}"
    return text if text.isprintable() else f"hex:{content.hex()}"
