"""`ottla config`: show, change and explain settings. A file per verb."""

import click

from ottla.cli.config.explain import explain
from ottla.cli.config.get import get
from ottla.cli.config.set import set_


@click.group()
def config() -> None:
    """Show, change and explain settings.

    \b
    ottla config get topic flights
    ottla config set broker all log.retention.ms=3600000
    ottla config explain log.flush.policy
    """  # noqa: D301


for verb in (explain, get, set_):
    config.add_command(verb)
