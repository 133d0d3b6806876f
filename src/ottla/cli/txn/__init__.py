"""`ottla txn`: transactions of coordinators and partitions. A file per verb."""

import click

from ottla.cli.txn.abort import abort
from ottla.cli.txn.describe import describe
from ottla.cli.txn.hanging import hanging
from ottla.cli.txn.list import list_


@click.group()
def txn() -> None:
    """List, describe and abort transactions, and find those that hang."""


for verb in (abort, describe, hanging, list_):
    txn.add_command(verb)
