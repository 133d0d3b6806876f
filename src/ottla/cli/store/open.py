"""`ottla store open`: takes the ACLs away from the nodes of a cluster."""

from pathlib import Path

import click

from ottla.cli.store.acls import rewrite


@click.command("open")
@click.argument("properties", type=click.Path(path_type=Path, dir_okay=False))
def open_(properties: Path) -> None:
    """Let every client of ZooKeeper change the nodes again.

    \b
    ottla store open server.properties

    For a change of the brokers' user or password: open, give all brokers the new one with
    zookeeper.set.acl=false, then set it to true and run `ottla store secure`.
    """  # noqa: D301
    rewrite(properties, protects=False)
