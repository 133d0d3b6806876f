"""`ottla broker remove`: removes the registration of a broker that is gone for good."""

import click

from ottla.cli.common import options
from ottla.cli.common.completion import brokers
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show_one
from ottla.client.admin import Admin


@click.command()
@click.argument("broker_id", type=int, metavar="ID", shell_complete=brokers)
@options.yes
@options.bootstrap
@options.output
def remove(broker_id: int, yes: bool, bootstrap: str, form: str) -> None:
    """Remove broker ID, which is stopped for good, from the cluster.

    \b
    ottla broker drain 3
    ottla broker remove 3

    New internal topics get no replicas on it any more. Replicas that it still has stay assigned to
    it: drain it first. A removed broker that is started again registers again.
    """  # noqa: D301

    async def replicas(admin: Admin) -> int:
        standings = await admin.partitions.standings()
        return sum(broker_id in one.replicas for one in standings)

    left = with_admin(bootstrap, replicas)
    if left and not yes:
        options.confirm(f"It is a replica of {left:,} partitions; remove it all the same?")
    with_admin(bootstrap, lambda admin: admin.cluster.remove_broker(broker_id))
    if form == "json":
        show_one("json", {"removed": broker_id, "replicas_left": left})
        return
    click.echo(f"Broker {broker_id} is removed.")
