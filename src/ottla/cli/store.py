"""`ottla store`: sets which clients may read and change the nodes in ZooKeeper."""

import asyncio
from dataclasses import replace
from pathlib import Path

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings, read_broker_settings


@click.group()
def store() -> None:
    """Protect the nodes in ZooKeeper, or open them.

    \b
    ottla store secure server.properties
    ottla store open server.properties
    """  # noqa: D301


@store.command("open")
@click.argument("properties", type=click.Path(path_type=Path, dir_okay=False))
def open_(properties: Path) -> None:
    """Let every client of ZooKeeper change the nodes again.

    \b
    ottla store open server.properties

    To change the brokers' user or password: run this command, give all brokers the new login with
    zookeeper.set.acl=false, then set that to true and run `ottla store secure`.
    """  # noqa: D301
    rewrite(properties, protects=False)


@store.command()
@click.argument("properties", type=click.Path(path_type=Path, dir_okay=False))
def secure(properties: Path) -> None:
    """Let only the brokers' user change the nodes in ZooKeeper.

    \b
    ottla store secure server.properties

    PROPERTIES are a broker's, with coordination.user or zookeeper.ssl.keystore.location. All
    brokers must have these settings before, and zookeeper.set.acl=true, or they are locked out.
    """  # noqa: D301
    rewrite(properties, protects=True)


def rewrite(properties: Path, *, protects: bool) -> None:
    """Let only the identity in a broker's settings change the nodes, or let every client do so.

    Raises OttlaError.
    """
    settings = read_broker_settings(properties)
    address = settings.text("coordination.connect")
    if not address.startswith("zookeeper:"):
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"coordination.connect in {properties} names no ZooKeeper: other stores are files,"
            " which the system's permissions protect",
        )
    count = asyncio.run(_rewrite(settings, address, protects=protects))
    done = "only the brokers' user can change" if protects else "every client can change"
    click.echo(f"{count} nodes of {address}: {done} them")


async def _rewrite(settings: BrokerSettings, address: str, *, protects: bool) -> int:
    from ottla.broker.process.store_access import store_access  # noqa: PLC0415  # Slow to import.
    from ottla.coordination.connect import connect  # noqa: PLC0415

    access = store_access(settings)
    if protects and not access.identifies:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            "for whom are the nodes to be? Set coordination.user and coordination.password, or"
            " zookeeper.ssl.keystore.location with zookeeper.ssl.client.enable=true",
        )
    store = await connect(address, access=replace(access, protects=protects))
    # An optional dependency; `connect` raises an error that names it if it is missing.
    from ottla.coordination.zookeeper.store import ZookeeperStore  # noqa: PLC0415

    assert isinstance(store, ZookeeperStore)
    try:
        return await store.rewrite_acls()
    finally:
        await store.close()
