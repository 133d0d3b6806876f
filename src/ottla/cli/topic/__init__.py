"""`ottla topic`: topics, from their creation to their end. A file per verb."""

import click

from ottla.cli.topic.alter import alter
from ottla.cli.topic.compact import compact
from ottla.cli.topic.create import create
from ottla.cli.topic.delete import delete
from ottla.cli.topic.delete_records import delete_records
from ottla.cli.topic.describe import describe
from ottla.cli.topic.list import list_
from ottla.cli.topic.offsets import offsets
from ottla.cli.topic.sizes import sizes


@click.group()
def topic() -> None:
    """Create, list, describe, alter, compact and delete topics."""


for verb in (alter, compact, create, delete, delete_records, describe, list_, offsets, sizes):
    topic.add_command(verb)
