"""`ottla cluster balance`: replicas and leaders evenly on the brokers; planned, then done."""

from typing import Any

import click

from ottla.base.ids import TopicPartition
from ottla.cli import moving, options
from ottla.cli.connect import with_admin
from ottla.cli.output import show, show_one
from ottla.client.admin import Admin
from ottla.controller.balance import balanced


@click.command()
@click.option("--plan", "only_plan", is_flag=True, help="Show what would be moved. The default.")
@click.option("--apply", "apply_it", is_flag=True, help="Move it, and wait until that is done.")
@moving.at_once
@options.yes
@options.bootstrap
@options.output
def balance(
    only_plan: bool, apply_it: bool, at_once: int, yes: bool, bootstrap: str, form: str
) -> None:
    """Let each broker have as many replicas, and lead as often, as any other.

    \b
    ottla cluster balance --plan
    ottla cluster balance --apply
    ottla cluster balance --plan -o json > plan.json

    As few replicas as possible move, and none into a rack that has another. A partition that is
    led by others than its first replica is given back to that one.
    """  # noqa: D301
    if only_plan and apply_it:
        raise click.UsageError("either --plan or --apply")

    plan, rows, away = with_admin(bootstrap, _look)
    if not apply_it:
        _show_plan(form, plan, rows, away)
        return
    if (plan or away) and not yes:
        _show_plan("table", plan, rows, away)
        options.confirm("Do that?")

    async def work(admin: Admin) -> None:
        await moving.carry_out(admin, plan, moving.teller(form), at_once)
        if away:
            await moving.lead_first(admin, away)

    with_admin(bootstrap, work)
    if form == "json":
        show_one("json", {"moved": rows, "given_back": [str(name) for name in away]})
    elif plan or away:
        click.echo(f"The load is even: {_sentence(rows, away)}.")
    else:
        click.echo("The load is even already.")


async def _look(admin: Admin) -> tuple[moving.Plan, list[dict[str, Any]], list[TopicPartition]]:
    """What is to be moved, rows that show it, and what is to be given back."""
    found = await admin.cluster.describe()
    standings = await admin.partitions.standings()
    racks = {broker.broker_id: broker.rack for broker in found.brokers}
    moves = await admin.partitions.reassignments()
    ends = {name: move.target for name, move in moves.items()}
    lists = {one.name: ends.get(one.name, one.replicas) for one in standings}
    plan = balanced(lists, racks, ends)
    held = await moving.sizes(admin)
    away = [
        one.name
        for one in standings
        if one.name not in plan
        and one.name not in ends
        and one.leader != one.replicas[0]
        and one.replicas[0] in one.isr
    ]
    return plan, moving.plan_rows(plan, standings, held), away


def _show_plan(
    form: str, plan: moving.Plan, rows: list[dict[str, Any]], away: list[TopicPartition]
) -> None:
    if form == "json":
        show_one("json", moving.plan_text(plan))
        return
    show(form, rows, moving.PLAN_COLUMNS, empty="" if away else "the load is even already")
    if rows or away:
        click.echo(_sentence(rows, away))


def _sentence(rows: list[dict[str, Any]], away: list[TopicPartition]) -> str:
    parts = [moving.plan_sentence(rows)] if rows else []
    if away:
        parts.append(f"{len(away):,} partitions are given back to their first replicas")
    return "; ".join(parts)
