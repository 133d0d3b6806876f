"""`ottla dlq`: dead letters of topics and of tables. A file per verb."""

import click

from ottla.cli.dlq.list import list_
from ottla.cli.dlq.redrive import redrive
from ottla.cli.dlq.show import show


@click.group()
def dlq() -> None:
    """List dead letters, show them, send their records again."""


for verb in (list_, redrive, show):
    dlq.add_command(verb)
