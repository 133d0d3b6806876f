"""`ottla broker restart`: stops and starts one of several brokers of `ottla start --brokers`."""

import click

from ottla.cli.common import options
from ottla.cli.common.completion import brokers
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show_one
from ottla.cli.text.words import interval
from ottla.operations.restart import restart as restart_broker


@click.command()
@click.argument("broker_id", type=int, metavar="ID", shell_complete=brokers)
@click.option(
    "--timeout", type=interval, default="2m", show_default=True, help="How long to wait at most."
)
@options.bootstrap
@options.output
def restart(broker_id: int, timeout: int, bootstrap: str, form: str) -> None:
    """Restart one broker of `ottla start --brokers`, on this machine.

    \b
    ottla broker restart 2
    ottla broker restart 2 --timeout 5m -o json

    It hands its partitions over, stops in order, and is started with the same settings. Clients
    go on with the other brokers. Returns when it is back.
    """  # noqa: D301
    old, new = with_admin(bootstrap, lambda admin: restart_broker(admin, broker_id, timeout / 1000))
    if form == "json":
        show_one("json", {"broker": broker_id, "old_pid": old, "pid": new})
    else:
        click.echo(f"Broker {broker_id} is back: process {new}, before {old}.")
