"""`ottla partition reassign`: moves partitions to other brokers."""

from pathlib import Path

import click

from ottla.cli.common import options
from ottla.cli.common.completion import partitions
from ottla.cli.common.connect import with_admin
from ottla.cli.text import plans
from ottla.cli.text.output import show
from ottla.cli.text.places import METAVAR, broker_list, named
from ottla.cli.text.words import size
from ottla.client.admin import Admin
from ottla.client.admin.partitions import PartitionStanding
from ottla.operations.moves import begin, lead_first, wait
from ottla.operations.placement import plan_reassignment
from ottla.operations.plans import MovePlan, Plan, bad_plan, from_json
from ottla.operations.throttle import remove_throttle, throttle


@click.command()
@click.argument("words", nargs=-1, metavar=f"[{METAVAR}]", shell_complete=partitions)
@click.option("--to", "target", type=broker_list, metavar="1,2,3", help="The first shall lead.")
@click.option(
    "--plan",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file in the form of `partition plan -o json` and kafka-reassign-partitions.",
)
@click.option(
    "--wait", "waits", is_flag=True, help="Return when all is moved, and led by the first."
)
@click.option(
    "--throttle",
    "rate",
    type=size,
    metavar="RATE",
    help="Bytes per second that each broker sends and takes for it, such as 10M.",
)
@options.yes
@options.bootstrap
@options.output
def reassign(
    words: tuple[str, ...],
    target: tuple[int, ...] | None,
    file: Path | None,
    waits: bool,
    rate: int | None,
    yes: bool,
    bootstrap: str,
    form: str,
) -> None:
    """Move partitions to other brokers. They are served all the while.

    \b
    ottla partition reassign flights-0 --to 2,3,4
    ottla partition reassign flights --to 1,2,3 --wait
    ottla partition reassign --plan plan.json --throttle 10M --wait

    New replicas copy the log first; when all are in sync, the old ones are deleted. A
    throttle is removed at the end of --wait, else by `ottla partition unthrottle`.
    """  # noqa: D301
    if (file is None) == (target is None) or (target is None) == bool(words):
        raise click.UsageError("name partitions and --to, or give a --plan")

    wanted = None if file is None else _read(file)

    async def look(admin: Admin) -> tuple[MovePlan, list[PartitionStanding]]:
        if wanted is not None:
            return await plan_reassignment(admin, wanted)
        assert target is not None
        return await plan_reassignment(admin, dict.fromkeys(await named(admin, words), target))

    found, standings = with_admin(bootstrap, look)
    if found.plan and not yes:
        show("table", plans.plan_rows(found), plans.COLUMNS)
        options.confirm(f"{plans.plan_sentence(found)}. Do that?")

    async def work(admin: Admin) -> None:
        if rate is not None:
            await throttle(admin, found.plan, standings, rate)
        await begin(admin, found.plan)
        if waits:
            await wait(admin, found.plan, plans.on_progress(form))
            await lead_first(admin, list(found.plan))
            if rate is not None:
                await remove_throttle(admin)

    if found.plan:
        with_admin(bootstrap, work)
    if form == "json":
        show("json", plans.plan_rows(found), [])
    else:
        click.echo(_outcome(found, ended=waits, throttled=rate is not None))


def _read(file: Path) -> Plan:
    """The plan in a file. Raises OttlaError(INVALID_REQUEST)."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise bad_plan(str(file), error.strerror or "it cannot be read") from None
    except ValueError as error:
        raise bad_plan(str(file), f"{type(error).__name__} {error}") from None
    return from_json(text, str(file))


def _outcome(plan: MovePlan, *, ended: bool, throttled: bool) -> str:
    """The outcome of a reassignment, for people."""
    if not plan.moves:
        return "They are there already."
    if ended:
        return f"Done: {plans.plan_sentence(plan)}."
    after = ", `ottla partition unthrottle` removes the throttle after it" if throttled else ""
    return (
        f"Begun: {plans.plan_sentence(plan)}. `ottla partition status` shows how far it is, "
        f"`ottla partition cancel` takes back what has not ended{after}."
    )
