"""Options that several commands of the lake have, each said once."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ottla.cli.text import words

Command = TypeVar("Command", bound=Callable[..., Any])


def table_format(command: Command) -> Command:
    """`--format`, as the parameter `table_format`."""
    return click.option(
        "--format",
        "table_format",
        type=click.Choice(["parquet", "delta", "iceberg"]),
        default=None,
        help="The format of a new table; parquet by default.",
    )(command)


def start(where: str) -> Callable[[Command], Command]:
    """`--from`, as the parameter `start`; `where` begins its help."""
    return click.option(
        "--from",
        "start",
        default="last-load",
        show_default=True,
        help=f"{where}: earliest, latest, a time (10m, 2024-01-31), or PARTITION:OFFSET,… "
        "(other partitions: earliest)",
    )


def end(command: Command) -> Command:
    """`--until`, as the parameter `end`."""
    return click.option(
        "--until",
        "end",
        default="latest",
        show_default=True,
        help="Where it ends, likewise (other partitions: latest).",
    )(command)


def group(command: Command) -> Command:
    """`--group`, for tools that show lag."""
    return click.option(
        "--group", default=None, help="Commit to this group where the table stands, for lag tools."
    )(command)


def losses(command: Command) -> Command:
    """`--skip-unreadable` and `--accept-loss`: what may be missing."""
    skip = click.option(
        "--skip-unreadable",
        is_flag=True,
        help="Leave out batches that cannot be read, and count them, instead of failing.",
    )
    accept = click.option(
        "--accept-loss",
        is_flag=True,
        help="Go on where records were deleted before they were read, and put that on record.",
    )
    return skip(accept(command))


def on_bad_timestamp(*policies: str) -> Callable[[Command], Command]:
    """`--on-bad-timestamp`, with these policies; the first is the default."""
    return click.option(
        "--on-bad-timestamp",
        type=click.Choice(policies),
        default=policies[0],
        show_default=True,
        help="What becomes of a record whose timestamp no Spark timestamp can hold.",
    )


def event_times(command: Command) -> Command:
    """`--partition-by` and what else concerns event time; taken back by `event_settings`."""
    given = [
        click.option(
            "--partition-by",
            type=click.Choice(["day", "hour", "month", "none"]),
            default=None,
            help="Keep rows apart by event time (UTC); the first load decides.",
        ),
        click.option(
            "--event-time",
            default=None,
            metavar="COLUMN",
            help="Which column it is: timestamp (the record's), or a decoded one of that type.",
        ),
        click.option(
            "--allowed-lateness",
            type=words.span,
            default=None,
            metavar="SPAN",
            help="How far behind the highest event time the watermark stays; 0 by default.",
        ),
        click.option(
            "--idle-after",
            type=words.span,
            default=None,
            metavar="SPAN",
            help="Let a partition without new records follow the clock, SPAN behind it.",
        ),
        click.option(
            "--late-rows",
            type=click.Choice(["keep", "dead-letter", "fail"]),
            default=None,
            help="What becomes of rows behind the table's watermark; keep by default.",
        ),
    ]
    for option in reversed(given):
        command = option(command)
    return command


def event_settings(given: dict[str, Any]) -> Any:
    """Take the values of `event_times` out of a command's arguments."""
    from ottla.lake.events.times import EventSettings  # noqa: PLC0415  # Arrow is an extra.

    return EventSettings(
        given.pop("partition_by"),
        given.pop("event_time"),
        given.pop("allowed_lateness"),
        given.pop("idle_after"),
        given.pop("late_rows"),
    )


def size(name: str, default: str, text: str) -> Callable[[Command], Command]:
    """An option with a size of at least one byte."""
    return click.option(
        name, type=words.size, default=default, show_default=True, metavar="SIZE", help=text
    )


def file_sizes(command: Command) -> Command:
    """`--target-file-size` and those of row groups; taken back by `sizes`."""
    rows = click.option(
        "--row-group-rows",
        type=click.IntRange(1),
        default=1 << 20,
        show_default=True,
        metavar="N",
        help="Rows of a row group, at most.",
    )
    files = size("--target-file-size", "128Mi", "Of the log that one file holds, at most.")
    groups = size("--row-group-size", "64Mi", "Of a row group in memory, at most.")
    return files(rows(groups(command)))


def sizes(given: dict[str, Any]) -> Any:
    """Take the values of `file_sizes` out of a command's arguments."""
    from ottla.lake.loads.file_sizes import FileSizes  # noqa: PLC0415  # As above.

    return FileSizes(
        given.pop("target_file_size"), given.pop("row_group_rows"), given.pop("row_group_size")
    )


def override(command: Command) -> Command:
    """`--override`, with a reason."""
    return click.option(
        "--override",
        metavar="REASON",
        help="Build on a table whose manifests contradict each other, and put that on record.",
    )(command)


def dead_letter_topic(command: Command) -> Command:
    """`--dead-letter-topic`."""
    return click.option(
        "--dead-letter-topic",
        default=None,
        metavar="TOPIC",
        help="Send a copy of each dead letter to this topic.",
    )(command)
