"""`ottla broker`: runs a broker as Kafka's scripts do, empties and removes one. A file per verb."""

import click

from ottla.cli.broker.drain import drain
from ottla.cli.broker.remove import remove
from ottla.cli.broker.run import run


@click.group()
def broker() -> None:
    """Run a broker from a server.properties file, or empty one that runs."""


for verb in (drain, remove, run):
    broker.add_command(verb)
