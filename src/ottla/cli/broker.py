"""`ottla broker`: runs, restarts, empties and removes brokers."""

import logging
import sys
from pathlib import Path

import click

from ottla.base.log_lines import log_to_stderr
from ottla.base.private_files import exposed_file
from ottla.base.settings import BrokerSettings, is_secret, read_broker_settings
from ottla.cli.common import options
from ottla.cli.common.completion import brokers
from ottla.cli.common.connect import connected, with_admin
from ottla.cli.start.plan import require_no_brokers
from ottla.cli.start.start import LOG_LAYOUT, run_unit
from ottla.cli.text import plans
from ottla.cli.text.output import show, show_one
from ottla.cli.text.places import few
from ottla.cli.text.words import interval
from ottla.client.admin import Admin
from ottla.operations.moves import carry_out, to_json
from ottla.operations.placement import plan_drain
from ottla.operations.restart import pids
from ottla.operations.restart import restart as restart_broker
from ottla.operations.settings import log_levels


@click.group()
def broker() -> None:
    """Run a broker from a server.properties file; list, restart, empty and remove brokers."""


@broker.command()
@click.argument("broker_id", type=int, metavar="ID", shell_complete=brokers)
@click.option("--leaders", "only_leaders", is_flag=True, help="Lead nothing, but keep the copies.")
@click.option("--plan", "only_plan", is_flag=True, help="Show what would be moved, and stop.")
@options.at_once
@options.yes
@options.bootstrap
@options.output
def drain(
    broker_id: int,
    only_leaders: bool,
    only_plan: bool,
    at_once: int,
    yes: bool,
    bootstrap: str,
    form: str,
) -> None:
    """Move all replicas, or (--leaders) leadership, off broker ID.

    \b
    ottla broker drain 3
    ottla broker drain 3 --leaders
    ottla broker drain 3 --plan

    A restart needs no drain: a broker that stops on SIGTERM moves its leaderships to other brokers.
    Use --leaders for longer maintenance, and no option for a broker that is to be removed; that
    broker may be dead already. The command waits until all is moved; after an interruption, run it
    again to continue. `ottla cluster balance` moves load back.
    """  # noqa: D301
    found = with_admin(
        bootstrap, lambda admin: plan_drain(admin, broker_id, only_leaders=only_leaders)
    )
    plan, rows = found.moves.plan, plans.plan_rows(found.moves)
    if only_plan and form == "json":
        show_one("json", to_json(plan))
        return
    if form == "table" and plan and (only_plan or not yes):
        show(form, rows, plans.COLUMNS)
        click.echo(plans.plan_sentence(found.moves))
    if plan and not only_plan:
        if not yes:
            options.confirm("Do that?")
        on_done = plans.on_done(form)
        with_admin(bootstrap, lambda admin: carry_out(admin, plan, at_once, on_done))
    if form == "json":
        kept = [str(name) for name in found.stay]
        show_one("json", {"broker": broker_id, "moved": rows, "kept": kept})
        return
    if found.stay:
        click.echo(
            f"Broker {broker_id} leads {few(found.stay)} on: no other broker has a replica.",
            err=True,
        )
    if not plan or not only_plan:
        what = "leads nothing that others have" if only_leaders else "has no replicas"
        click.echo(f"Broker {broker_id} {what}{' any more' if plan else ''}.")


@broker.command(name="log-level")
@click.argument("area", default="")
@click.argument(
    "level", required=False, type=click.Choice(["debug", "info", "warn", "error", "default"])
)
@click.option("--broker", "ids", type=int, multiple=True, metavar="ID", help="Not all brokers.")
@connected
@options.output
async def log_level(
    admin: Admin, area: str, level: str | None, ids: tuple[int, ...], form: str
) -> None:
    """Show or set the log level of AREA on all brokers.

    \b
    ottla broker log-level
    ottla broker log-level replica debug
    ottla broker log-level replica default --broker 2

    AREA is the beginning of a part of loggers' names: `replica` has ottla.broker.replication and
    all below it. The level `default` is that of the logger above. A broker that starts again
    has its first levels again. Needs ALTER on the cluster.
    """  # noqa: D301
    found = await log_levels(admin, area, level or "", ids)
    rows = [{"broker": one.broker_id, "logger": one.logger, "level": one.level} for one in found]
    show(form, rows, ["broker", "logger", "level"])


_COLUMNS = ["broker", "address", "rack", "controller", "pid"]


@broker.command(name="list")
@connected
@options.output
async def list_(admin: Admin, form: str) -> None:
    """List the live brokers; if on this machine, with the process.

    \b
    ottla broker list
    ottla broker list -o json
    """  # noqa: D301
    processes = await pids(admin)
    found = await admin.cluster.describe()
    show(
        form,
        [
            {
                "broker": one.broker_id,
                "address": str(one.address),
                "rack": one.rack,
                "controller": one.broker_id == found.controller_id,
                "pid": processes.get(one.broker_id),
            }
            for one in found.brokers
        ],
        _COLUMNS,
    )


@broker.command()
@click.argument("broker_id", type=int, metavar="ID", shell_complete=brokers)
@options.yes
@options.bootstrap
@options.output
def remove(broker_id: int, yes: bool, bootstrap: str, form: str) -> None:
    """Remove broker ID, which is stopped for good, from the cluster.

    \b
    ottla broker drain 3
    ottla broker remove 3

    New internal topics get no replicas on it any more. Replicas that it still has remain assigned
    to it, so drain it first. A removed broker registers again if it is started.
    """  # noqa: D301

    async def replicas(admin: Admin) -> int:
        standings = await admin.partitions.describe()
        return sum(broker_id in one.replicas for one in standings)

    left = with_admin(bootstrap, replicas)
    if left and not yes:
        options.confirm(f"It is a replica of {left:,} partitions; remove it all the same?")
    with_admin(bootstrap, lambda admin: admin.cluster.remove_broker(broker_id))
    if form == "json":
        show_one("json", {"removed": broker_id, "replicas_left": left})
        return
    click.echo(f"Broker {broker_id} is removed.")


@broker.command()
@click.argument("broker_id", type=int, metavar="ID", shell_complete=brokers)
@click.option(
    "--timeout", type=interval, default="2m", show_default=True, help="How long to wait at most."
)
@connected
@options.output
async def restart(admin: Admin, broker_id: int, timeout: int, form: str) -> None:
    """Restart a broker of `ottla start` on this machine.

    \b
    ottla broker restart 2
    ottla broker restart 2 --timeout 5m -o json

    The broker hands its partitions over, stops in order, and is started with the same settings.
    Clients continue with the other brokers. The command ends when the broker is back.
    """  # noqa: D301
    old, new = await restart_broker(admin, broker_id, timeout / 1000)
    if form == "json":
        show_one("json", {"broker": broker_id, "old_pid": old, "pid": new})
    else:
        click.echo(f"Broker {broker_id} is back: process {new}, before {old}.")


_log = logging.getLogger(__name__)


@broker.command()
@click.argument("properties", type=click.Path(path_type=Path, dir_okay=False))
def run(properties: Path) -> None:
    """Run a broker with the settings in a file. SIGTERM stops it in order.

    \b
    ottla broker run server.properties

    With `cores=auto` or `cores=N` in the file, one broker runs on each core. SIGHUP then reads the
    file again, and restarts them one after another.
    """  # noqa: D301
    settings = read_broker_settings(properties)
    log_to_stderr(logging.INFO, LOG_LAYOUT)
    _warn_of_open_secrets(properties, settings)
    if settings.text("cores"):
        sys.exit(run_unit(properties))
    for folder in settings.log_dirs:
        require_no_brokers(Path(folder))
    from ottla.broker.process.main import run as serve  # noqa: PLC0415  # After the checks.

    serve(settings, on_ready=lambda ready: _log.info("serves on port %d", ready.port))


def _warn_of_open_secrets(properties: Path, settings: BrokerSettings) -> None:
    secrets = [name for name in settings.static if is_secret(name)]
    mode = exposed_file(str(properties)) if secrets else None
    if mode is not None:
        _log.warning(
            "other users of this machine may read %s, which is in %s (mode %04o): run `chmod 600`"
            " on it, and replace the secret if they may have read it",
            secrets[0],
            properties,
            mode,
        )
