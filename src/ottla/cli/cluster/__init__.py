"""`ottla cluster`: its brokers, its health, its balance. A file per verb."""

import click

from ottla.cli.cluster.balance import balance
from ottla.cli.cluster.controller import controller
from ottla.cli.cluster.describe import describe
from ottla.cli.cluster.health import health
from ottla.cli.cluster.log_dirs import log_dirs


@click.group()
def cluster() -> None:
    """Describe a cluster, find what is wrong with it, even out its load."""


for verb in (balance, controller, describe, health, log_dirs):
    cluster.add_command(verb)
