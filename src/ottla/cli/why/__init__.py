"""`ottla why`: explains the state of a partition or a group by decisions. A file per question."""

import click

from ottla.cli.why.compaction import compaction
from ottla.cli.why.isr import isr
from ottla.cli.why.leader import leader
from ottla.cli.why.lso import lso
from ottla.cli.why.rebalance import rebalance
from ottla.cli.why.retention import retention


@click.group()
def why() -> None:
    """Show why a partition or group is as it is: decisions, evidence, settings.

    Each broker remembers the latest decisions it took since it started; all are asked.
    """


for question in (compaction, isr, leader, lso, rebalance, retention):
    why.add_command(question)
