"""`ottla perf consume`: measures how fast records are returned."""

import click

from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.common.connect import run
from ottla.cli.perf.shown import show_performance
from ottla.diagnosis.performance import consume as measured


@click.command()
@click.argument("topic", shell_complete=topics)
@click.option("-n", "--records", "most", type=click.IntRange(1), help="Not more than about these.")
@options.bootstrap
@options.output
def consume(topic: str, most: int | None, bootstrap: str, form: str) -> None:
    """Read TOPIC to its end as fast as it comes. Nothing of it is shown.

    \b
    ottla perf consume scratch
    ottla perf consume scratch -n 100000 -o json
    """  # noqa: D301
    show_performance(topic, run(measured(bootstrap, topic, most)), form)
