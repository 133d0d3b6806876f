"""`ottla why leader`: the decisions that led to a partition's leader, or to none."""

import click

from ottla.base.ids import TopicPartition
from ottla.cli.common import options
from ottla.cli.common.completion import partitions
from ottla.cli.text.places import place
from ottla.cli.why.story import show_story
from ottla.diagnosis.decisions import ABOUT_LEADER


@click.command()
@click.argument("name", type=place, metavar="TOPIC-P", shell_complete=partitions)
@options.bootstrap
@options.output
def leader(name: TopicPartition, bootstrap: str, form: str) -> None:
    """Show why a partition has the leader that it has, or none.

    \b
    ottla why leader flights-0
    ottla why leader flights-0 -o json
    """  # noqa: D301
    show_story(name, ABOUT_LEADER, "the leader", bootstrap, form)
