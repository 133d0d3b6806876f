"""`ottla broker drain`: a broker gives away what it has, so that it can be stopped or removed."""

import click

from ottla.cli.common import options
from ottla.cli.common.completion import brokers
from ottla.cli.common.connect import with_admin
from ottla.cli.text import plans
from ottla.cli.text.output import show, show_one
from ottla.cli.text.places import few
from ottla.operations.drain import plan_drain
from ottla.operations.moves import carry_out
from ottla.operations.plans import to_json


@click.command()
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

    A restart needs no drain: a broker that stops on SIGTERM moves its leaderships to others. Use
    --leaders for longer maintenance, and no option for a broker that is to be removed; the broker
    may be dead already. The command waits until all is moved; after an interruption, run it again
    to continue. `ottla cluster balance` moves load back.
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
