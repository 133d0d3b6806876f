"""`ottla broker drain`: a broker gives away what it has, so that it can be stopped or removed."""

from typing import Any

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.cli import moving, options
from ottla.cli.connect import with_admin
from ottla.cli.output import show, show_one
from ottla.cli.places import few
from ottla.client.admin import Admin
from ottla.controller.balance import Lists, Plan, Racks, follow_only, off


@click.command()
@click.argument("broker_id", type=int, metavar="ID")
@click.option("--leaders", "only_leaders", is_flag=True, help="Lead nothing, but keep the copies.")
@click.option("--plan", "only_plan", is_flag=True, help="Show what would be moved, and stop.")
@moving.at_once
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
    """Move all replicas off broker ID, or (--leaders) all leadership; waits, and tells how far.

    \b
    ottla broker drain 3
    ottla broker drain 3 --leaders
    ottla broker drain 3 --plan

    For a restart nothing is needed: a broker that stops in order hands over by itself. --leaders
    is for a longer look at a broker, the whole for one that goes for good, dead ones included.
    Interrupted, it goes on where it was. `ottla cluster balance` brings load back.
    """  # noqa: D301
    plan, rows, stay = with_admin(
        bootstrap, lambda admin: _look(admin, broker_id, only_leaders=only_leaders)
    )
    if only_plan and form == "json":
        show_one("json", moving.plan_text(plan))
        return
    if form == "table" and plan and (only_plan or not yes):
        show(form, rows, moving.PLAN_COLUMNS)
        click.echo(moving.plan_sentence(rows))
    if plan and not only_plan:
        if not yes:
            options.confirm("Do that?")
        tell = moving.teller(form)
        with_admin(bootstrap, lambda admin: moving.carry_out(admin, plan, tell, at_once))
    if form == "json":
        show_one("json", {"broker": broker_id, "moved": rows, "kept": [str(name) for name in stay]})
        return
    if stay:
        click.echo(f"Broker {broker_id} leads {few(stay)} on: nobody else has them.", err=True)
    if not plan or not only_plan:
        what = "leads nothing that others have" if only_leaders else "has no replicas"
        click.echo(f"Broker {broker_id} {what}{' any more' if plan else ''}.")


async def _look(
    admin: Admin, broker_id: int, *, only_leaders: bool
) -> tuple[moving.Plan, list[dict[str, Any]], list[TopicPartition]]:
    """What is to be moved, rows that show it, and what nobody else can lead."""
    found = await admin.cluster.describe()
    standings = await admin.partitions.standings()
    lists = {one.name: one.replicas for one in standings}
    racks = {broker.broker_id: broker.rack for broker in found.brokers}
    if broker_id not in racks and not any(broker_id in replicas for replicas in lists.values()):
        raise OttlaError(
            ErrorCode.BROKER_NOT_AVAILABLE,
            f"there is no broker {broker_id}, and none of its replicas; there are {sorted(racks)}",
        )
    plan = follow_only(lists, broker_id, racks) if only_leaders else _off(lists, broker_id, racks)
    stay = [
        one.name
        for one in standings
        if only_leaders and one.name not in plan and one.leader == broker_id
    ]
    return plan, moving.plan_rows(plan, standings, await moving.sizes(admin)), stay


def _off(lists: Lists, broker_id: int, racks: Racks) -> Plan:
    try:
        return off(lists, broker_id, racks)
    except OttlaError as error:
        raise OttlaError(
            error.code,
            f"{error.message}; to empty it of leaders only, `ottla broker drain {broker_id} "
            "--leaders`",
        ) from None
