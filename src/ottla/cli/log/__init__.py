"""`ottla log`: what stands in the files of a log, and what became of offsets. A file per verb."""

import click

from ottla.cli.log.dump import dump
from ottla.cli.log.ledger import ledger


@click.group()
def log() -> None:
    """Look into log files."""


for verb in (dump, ledger):
    log.add_command(verb)
