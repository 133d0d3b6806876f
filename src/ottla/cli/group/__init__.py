"""`ottla group`: list, describe, rewind and delete consumer groups. A file per verb."""

import click

from ottla.cli.group.delete import delete
from ottla.cli.group.describe import describe
from ottla.cli.group.list import list_
from ottla.cli.group.reset import reset


@click.group()
def group() -> None:
    """List, describe, rewind and delete consumer groups."""


for verb in (delete, describe, list_, reset):
    group.add_command(verb)
