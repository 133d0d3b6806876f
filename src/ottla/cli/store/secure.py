"""`ottla store secure`: protects the nodes of a cluster that began without ACLs on them."""

from pathlib import Path

import click

from ottla.cli.store.acls import rewrite


@click.command()
@click.argument("properties", type=click.Path(path_type=Path, dir_okay=False))
def secure(properties: Path) -> None:
    """Let only the brokers' user change the nodes in ZooKeeper.

    \b
    ottla store secure server.properties

    PROPERTIES are a broker's, with coordination.user or zookeeper.ssl.keystore.location. All
    brokers must have these settings before, and zookeeper.set.acl=true, or they are locked out.
    """  # noqa: D301
    rewrite(properties, protects=True)
