"""Options that several commands of the lake have, each said once."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

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
        help=f"{where}: earliest, latest, @MILLISECONDS, or PARTITION:OFFSET,… "
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


def log_dirs(command: Command) -> Command:
    """`--log-dir`, any number of times."""
    return click.option(
        "--log-dir",
        "log_dirs",
        multiple=True,
        metavar="DIR",
        help="A broker's log directory that tasks can see: they read its files directly; "
        "repeatable.",
    )(command)
