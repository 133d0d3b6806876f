"""`ottla why isr`: the decisions that led to a partition's ISR."""

import click

from ottla.base.ids import TopicPartition
from ottla.cli.common import options
from ottla.cli.common.completion import partitions
from ottla.cli.text.places import place
from ottla.cli.why.story import show_story
from ottla.diagnosis.decisions import ABOUT_ISR


@click.command()
@click.argument("name", type=place, metavar="TOPIC-P", shell_complete=partitions)
@options.bootstrap
@options.output
def isr(name: TopicPartition, bootstrap: str, form: str) -> None:
    """Show why the ISR of a partition is what it is.

    \b
    ottla why isr flights-0
    ottla why isr flights-0 -o json
    """  # noqa: D301
    show_story(name, ABOUT_ISR, "the ISR", bootstrap, form)
