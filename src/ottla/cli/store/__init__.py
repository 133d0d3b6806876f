"""`ottla store`: who may read and change the nodes in ZooKeeper. A file per verb."""

import click

from ottla.cli.store.open import open_
from ottla.cli.store.secure import secure


@click.group()
def store() -> None:
    """Protect the nodes in ZooKeeper, or open them.

    \b
    ottla store secure server.properties
    ottla store open server.properties
    """  # noqa: D301


store.add_command(secure)
store.add_command(open_)
