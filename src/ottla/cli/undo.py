"""`ottla undo`: lists changes that can be undone, and undoes one."""

from typing import Any

import click

from ottla.base.quantities import iso
from ottla.cli.common import options
from ottla.cli.common.connect import connected
from ottla.cli.text.output import show, show_one
from ottla.client.admin import Admin
from ottla.client.admin.undo import RecordedChange
from ottla.operations.undo import (
    UndoPlan,
    carry_out_undo,
    effect,
    plan_undo,
    subject,
    undoable,
)

_COLUMNS = ["id", "when", "by", "change", "undo"]
_STEP_COLUMNS = ["name", "now", "back_to"]


@click.command()
@click.argument("change_id", metavar="[ID]", default="")
@click.option("--yes", "-y", is_flag=True, help="Undo it; without this, only show what would be.")
@click.option("--force", is_flag=True, help="Undo it even if the value was changed since.")
@connected
@options.output
async def undo(admin: Admin, change_id: str, yes: bool, force: bool, form: str) -> None:
    """List changes that can be undone, the newest first, or undo the change ID.

    \b
    ottla undo
    ottla undo 17
    ottla undo 17 --yes
    ottla undo wz4Yd8YRSaywo9vcQTtkEg --yes

    These are the last changes of settings, quotas and committed offsets, by any client, and deleted
    topics whose records are not removed yet. A group must have no members. An undo is a change,
    too, and can be undone.
    """  # noqa: D301
    if not change_id:
        if yes or force:
            raise click.UsageError("name the change to undo: `ottla undo` lists them")
        rows = [_row(change) for change in await undoable(admin)]
        show(form, rows, _COLUMNS, empty="there is nothing to undo")
        return
    plan = await plan_undo(admin, change_id)
    if yes:
        await carry_out_undo(admin, plan, force=force)
    if form == "json":
        show_one("json", _plan_row(plan) | {"undone": yes})
        return
    show_one(form, _row(plan.change))
    if plan.steps:
        click.echo()
        show(form, [_step_row(plan, step.name) for step in plan.steps], _STEP_COLUMNS)
    elif not plan.change.topic_id.int:
        click.echo("\nNothing to do: the values are as they were.")
        return
    if yes:
        click.echo("\nUndone.")
    elif plan.obstacle:
        click.echo(f"\nThis is refused: {plan.obstacle}.")
    else:
        click.echo("\nNothing is changed yet; the same with --yes does it.")


def _row(change: RecordedChange) -> dict[str, Any]:
    author = change.principal.removeprefix("User:")
    return {
        "id": change.id,
        "when": iso(change.at_ms),
        "by": f"{author} ({change.client_id} at {change.host})" if change.host else "unknown",
        "change": subject(change),
        "undo": effect(change),
        "until": iso(change.until_ms) if change.until_ms >= 0 else None,
    }


def _plan_row(plan: UndoPlan) -> dict[str, Any]:
    steps = [_step_row(plan, step.name) for step in plan.steps]
    return _row(plan.change) | {"steps": steps, "obstacle": plan.obstacle or None}


def _step_row(plan: UndoPlan, name: str) -> dict[str, Any]:
    (step,) = [one for one in plan.steps if one.name == name]
    return {"name": name, "now": step.now, "back_to": step.back_to}
