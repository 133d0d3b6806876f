"""`ottla topic`: create, list, describe, alter, compact and delete topics. A file per verb."""

import click

from ottla.cli.topic.alter import alter
from ottla.cli.topic.compact import compact
from ottla.cli.topic.create import create
from ottla.cli.topic.delete import delete
from ottla.cli.topic.describe import describe
from ottla.cli.topic.list import list_


@click.group()
def topic() -> None:
    """Create, list, describe, alter, compact and delete topics."""


for verb in (alter, compact, create, delete, describe, list_):
    topic.add_command(verb)
