"""`ottla cluster controller`: which broker controls the cluster."""

import click

from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show_one
from ottla.diagnosis.cluster import live_controller


@click.command()
@options.bootstrap
@options.output
@click.pass_context
def controller(context: click.Context, bootstrap: str, form: str) -> None:
    """Show which broker controls the cluster. The exit code is 1 if none does.

    \b
    ottla cluster controller
    """  # noqa: D301
    found = with_admin(bootstrap, lambda admin: admin.cluster.describe())
    addresses = {broker.broker_id: str(broker.address) for broker in found.brokers}
    broker_id = live_controller(found)
    if form == "json":
        address = None if broker_id is None else addresses[broker_id]
        show_one("json", {"controller": broker_id, "address": address})
    elif broker_id is None:
        click.echo("no broker is controller now", err=True)
    else:
        click.echo(f"broker {broker_id} at {addresses[broker_id]}")
    if broker_id is None:
        context.exit(1)
