"""`ottla partition plan`: plans on which brokers partitions could be."""

import click

from ottla.cli.common import options
from ottla.cli.common.completion import partitions
from ottla.cli.common.connect import with_admin
from ottla.cli.text import plans
from ottla.cli.text.output import show, show_one
from ottla.cli.text.places import METAVAR, broker_list, named
from ottla.client.admin import Admin
from ottla.operations.placement import plan_placement
from ottla.operations.plans import MovePlan, to_json


@click.command()
@click.argument("words", nargs=-1, required=True, metavar=METAVAR, shell_complete=partitions)
@click.option(
    "--brokers", "chosen", type=broker_list, help="Where to; default: all that are alive."
)
@click.option("--replicas", type=click.IntRange(1), help="How many of each; else as many as now.")
@options.bootstrap
@options.output
def plan(
    words: tuple[str, ...],
    chosen: tuple[int, ...] | None,
    replicas: int | None,
    bootstrap: str,
    form: str,
) -> None:
    """Plan on which brokers partitions could be; nothing moves.

    \b
    ottla partition plan flights --brokers 2,3,4
    ottla partition plan flights planes --replicas 3 -o json > plan.json
    ottla partition reassign --plan plan.json

    Replicas on the chosen brokers stay there. The JSON is that of kafka-reassign-partitions.
    """  # noqa: D301

    async def work(admin: Admin) -> MovePlan:
        return await plan_placement(admin, await named(admin, words), chosen, replicas)

    found = with_admin(bootstrap, work)
    if form == "json":
        show_one("json", to_json(found.plan))
        return
    show(form, plans.plan_rows(found), plans.COLUMNS, empty="they are there already")
    if found.moves:
        click.echo(plans.plan_sentence(found))
