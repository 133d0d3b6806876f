"""`ottla log`: the contents of log files, and the fate of offsets. A file per verb."""

import click

from ottla.cli.log.dump import dump
from ottla.cli.log.ledger import ledger


@click.group()
def log() -> None:
    """Look into log files."""


for verb in (dump, ledger):
    log.add_command(verb)
