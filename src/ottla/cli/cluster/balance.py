"""`ottla cluster balance`: replicas and leaders evenly on the brokers; planned, then done."""

import click

from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.cli.text import plans
from ottla.cli.text.output import show, show_one
from ottla.operations.balance import BalancePlan, plan_balance
from ottla.operations.balance import balance as carry_out
from ottla.operations.plans import to_json


@click.command()
@click.option("--plan", "only_plan", is_flag=True, help="Show what would be moved. The default.")
@click.option("--apply", "apply_it", is_flag=True, help="Move it, and wait until that is done.")
@options.at_once
@options.yes
@options.bootstrap
@options.output
def balance(
    only_plan: bool, apply_it: bool, at_once: int, yes: bool, bootstrap: str, form: str
) -> None:
    """Spread replicas and leaders evenly over the brokers.

    \b
    ottla cluster balance --plan
    ottla cluster balance --apply
    ottla cluster balance --plan -o json > plan.json

    As few replicas as possible move, and none into a rack that has another. A partition that is
    led by another replica than its first is given back to that one.
    """  # noqa: D301
    if only_plan and apply_it:
        raise click.UsageError("either --plan or --apply")
    plan = with_admin(bootstrap, plan_balance)
    if not apply_it:
        _show_plan(form, plan)
        return
    if plan and not yes:
        _show_plan("table", plan)
        options.confirm("Do that?")
    on_done = plans.on_done(form)
    with_admin(bootstrap, lambda admin: carry_out(admin, plan, at_once, on_done))
    if form == "json":
        given_back = [str(name) for name in plan.given_back]
        show_one("json", {"moved": plans.plan_rows(plan.moves), "given_back": given_back})
    elif plan:
        click.echo(f"The load is even: {_sentence(plan)}.")
    else:
        click.echo("The load is even already.")


def _show_plan(form: str, plan: BalancePlan) -> None:
    if form == "json":
        show_one("json", to_json(plan.moves.plan))
        return
    empty = "" if plan.given_back else "the load is even already"
    show(form, plans.plan_rows(plan.moves), plans.COLUMNS, empty=empty)
    if plan:
        click.echo(_sentence(plan))


def _sentence(plan: BalancePlan) -> str:
    parts = [plans.plan_sentence(plan.moves)] if plan.moves.moves else []
    if plan.given_back:
        parts.append(f"{len(plan.given_back):,} partitions are given back to their first replicas")
    return "; ".join(parts)
