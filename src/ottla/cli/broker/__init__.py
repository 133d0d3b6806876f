"""`ottla broker`: runs, restarts, empties and removes brokers. A file per verb."""

import click

from ottla.cli.broker.drain import drain
from ottla.cli.broker.list import list_
from ottla.cli.broker.remove import remove
from ottla.cli.broker.restart import restart
from ottla.cli.broker.run import run


@click.group()
def broker() -> None:
    """Run a broker from a server.properties file; list, restart, empty and remove brokers."""


for verb in (drain, list_, remove, restart, run):
    broker.add_command(verb)
