"""`ottla perf`: measures how fast a cluster takes and returns records. A file per verb."""

import click

from ottla.cli.perf.consume import consume
from ottla.cli.perf.produce import produce


@click.group()
def perf() -> None:
    """Measure how fast a cluster takes and gives records, with one client."""


for verb in (consume, produce):
    perf.add_command(verb)
