"""`ottla consume`: shows the records of topics as text, as JSON or by a format string."""

import asyncio
import re
import sys

import click

from ottla.cli.common import options
from ottla.cli.common.completion import groups, topics
from ottla.cli.consume import shape
from ottla.cli.consume.reader import Wish, read
from ottla.cli.text.places import regex
from ottla.cli.text.words import moment, position
from ottla.diagnosis.record_choice import WHERE_FORMS, Position, condition_of

_FORMAT_HELP = (
    "Show each record as TEXT says: %k key, %v or %s value, %h headers, %t topic, %p partition, "
    "%o offset, %T timestamp (ms), %K and %S lengths of key and value, %% a percent sign; \\n, "
    "\\t and \\xNN as in C."
)


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="TOPIC...", shell_complete=topics)
@regex
@click.option("--follow", "-f", is_flag=True, help="Go on with what comes; ctrl-C ends.")
@click.option(
    "--from",
    "start",
    type=position,
    metavar="PLACE",
    help="earliest (default), latest, an offset, -N (the last N of each partition) or a time.",
)
@click.option("--since", type=moment, metavar="TIME", help="From this time, such as 10m (ago).")
@click.option("--until", type=moment, metavar="TIME", help="End before records of this time.")
@click.option("-n", "--count", type=click.IntRange(1), help="End after this many records.")
@click.option(
    "--partition", "-p", "chosen", multiple=True, type=click.IntRange(0), help="Only this one."
)
@click.option(
    "--group",
    "-g",
    shell_complete=groups,
    help="As a member of this group, from where it stands; commits.",
)
@click.option(
    "--isolation",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    default="read_uncommitted",
    show_default=True,
    help="Whether records of open and aborted transactions are shown.",
)
@click.option("--grep", metavar="PATTERN", help="Only records whose key or value matches.")
@click.option("--where", metavar="TEXT", help=f"Only records that match: {WHERE_FORMS}.")
@click.option("--keys", "-k", is_flag=True, help="The key and a tab before each value.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, as -o json.")
@click.option("--pretty", is_flag=True, help="JSON indented, and coloured on a terminal.")
@click.option("--format", "template", metavar="TEXT", help=_FORMAT_HELP)
@click.option("--output", "-o", "form", type=click.Choice(["text", "json"]), default="text")
@options.bootstrap
def consume(
    words: tuple[str, ...],
    regex: bool,
    follow: bool,
    start: Position | None,
    since: int | None,
    until: int | None,
    count: int | None,
    chosen: tuple[int, ...],
    group: str | None,
    isolation: str,
    grep: str | None,
    where: str | None,
    keys: bool,
    as_json: bool,
    pretty: bool,
    template: str | None,
    form: str,
    bootstrap: str,
) -> None:
    """Show the records of topics: their values, a line each. Ends at the ends of the logs.

    \b
    ottla consume flights                          all there is
    ottla consume flights -f --from -10            the last ten, and what comes
    ottla consume flights --since 10m --pretty     of the last ten minutes
    ottla consume flights --from 2024-01-31T09:00 --until 2024-01-31T10:00
    ottla consume flights --where 'key=N11216 value.delay~^-'
    ottla consume flights -n 3 --json              three, with all that belongs to them
    ottla consume flights --format '%p/%o %k: %v\\n'
    ottla consume flights --group audit -f         as a member of a group
    ottla consume --regex 'flights-.*' --isolation read_committed
    ottla consume flights --json | ottla produce copy --json

    Without a time zone, times are those of this machine. Nothing is committed without --group.
    """  # noqa: D301
    if follow and until is not None:
        raise click.UsageError("--follow never ends and --until does; give one")
    wish = Wish(
        words=words,
        regex=regex,
        read_committed=isolation == "read_committed",
        follow=follow,
        start=_start(start, since, group, chosen),
        until=until,
        count=count,
        chosen=chosen,
        group=group,
        pattern=_pattern(grep),
        where=condition_of(where or ""),
        show=_shape(keys=keys, as_json=as_json or form == "json", pretty=pretty, template=template),
    )
    asyncio.run(read(bootstrap, wish))


def _start(
    start: Position | None, since: int | None, group: str | None, chosen: tuple[int, ...]
) -> Position:
    if start is not None and since is not None:
        raise click.UsageError("--from and --since both set the start: give one of them")
    if since is not None:
        start = Position("time", since)
    if start is None:
        start = Position("earliest")
    if group and (chosen or start.kind not in ("earliest", "latest")):
        raise click.UsageError(
            "a group has its own partitions and offsets; `ottla group reset` moves them "
            "(--from earliest and latest say where a new group starts)"
        )
    return start


def _shape(*, keys: bool, as_json: bool, pretty: bool, template: str | None) -> shape.Shape:
    if template is not None:
        if as_json or pretty or keys:
            raise click.UsageError("--format says all; leave out --json, --pretty and --keys")
        return shape.format_string(template)
    is_terminal = sys.stdout.isatty()
    if pretty:
        return shape.pretty(keys=keys, whole=as_json, is_terminal=is_terminal)
    return shape.json_lines if as_json else shape.values(keys=keys, is_terminal=is_terminal)


def _pattern(text: str | None) -> re.Pattern[bytes] | None:
    if text is None:
        return None
    try:
        return re.compile(text.encode())
    except re.error as error:
        raise click.BadParameter(f"{text!r}: {error}", param_hint="--grep") from None
