"""`ottla partition`: elect leaders, plan and make moves. A file per verb."""

import click

from ottla.cli.partition.cancel import cancel
from ottla.cli.partition.elect import elect
from ottla.cli.partition.plan import plan
from ottla.cli.partition.reassign import reassign
from ottla.cli.partition.status import status
from ottla.cli.partition.unthrottle import unthrottle


@click.group()
def partition() -> None:
    """Elect leaders of partitions, and move partitions to other brokers."""


for verb in (cancel, elect, plan, reassign, status, unthrottle):
    partition.add_command(verb)
