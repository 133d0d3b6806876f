"""Selects dead letters of a topic or a table, by their properties."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ottla.cli.common.connect import with_admin
from ottla.cli.lake.ledgers import import_lake
from ottla.operations.dead_letters import FoundLetter, letters_of

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--stage", default=None, help="Only those of a stage, such as decode.value."),
    click.option("--from-topic", default=None, help="Only those of records of this topic."),
    click.option("--partition", type=int, default=None, help="Only those of this partition."),
    click.option("--offset", type=int, default=None, help="Only that of this record."),
    click.option("--matching", default=None, metavar="TEXT", help="Only errors with this text."),
)


def choosing(command: Command) -> Command:
    """Add the options that select letters; partition and offset are those of the record."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def chosen_by(given: dict[str, Any]) -> Callable[[FoundLetter], bool]:
    """Whether the options select a letter."""

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
    """Whether the source is a table: a path or a URL. No topic's name has a slash."""
    return "/" in source or Path(source).is_dir()


def read_letters(source: str, bootstrap: str) -> list[FoundLetter]:
    """All letters of a topic or of a table."""
    if is_table(source):
        import_lake()
        from ottla.lake.write.dead_letters import letters_of_table  # noqa: PLC0415  # An extra.

        return letters_of_table(source)
    return with_admin(bootstrap, lambda admin: letters_of(admin, bootstrap, source))
