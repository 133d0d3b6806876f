"""`ottla partition`: elects leaders, and plans and makes moves of partitions."""

from pathlib import Path
from typing import Any

import click

from ottla.base.ids import TopicPartition
from ottla.cli.common import options
from ottla.cli.common.completion import partitions
from ottla.cli.common.connect import connected, with_admin
from ottla.cli.text import plans
from ottla.cli.text.output import show, show_one
from ottla.cli.text.places import METAVAR, broker_list, few, named
from ottla.cli.text.words import size
from ottla.client.admin import Admin
from ottla.client.admin.partitions import ElectionKind, PartitionStatus
from ottla.operations import election, moves
from ottla.operations.election import Election
from ottla.operations.moves import (
    MovePlan,
    Plan,
    bad_plan,
    begin,
    from_json,
    lead_first,
    to_json,
    under_way,
    wait,
)
from ottla.operations.placement import plan_placement, plan_reassignment
from ottla.operations.throttle import remove_throttle, throttle


@click.group()
def partition() -> None:
    """Elect leaders of partitions, and move partitions to other brokers."""


@partition.command()
@click.argument("words", nargs=-1, metavar=f"[{METAVAR}]", shell_complete=partitions)
@click.option("--all", "every", is_flag=True, help="All that move.")
@connected
@options.output
async def cancel(admin: Admin, words: tuple[str, ...], every: bool, form: str) -> None:
    """Cancel moves that have not ended. Partitions go back to where they were.

    \b
    ottla partition cancel flights-0
    ottla partition cancel --all
    """  # noqa: D301
    if every == bool(words):
        raise click.UsageError("name partitions, or say --all")

    cancelled = await moves.cancel(admin, await named(admin, words) if words else None)
    if form == "json":
        show("json", [{"partition": str(name), "cancelled": True} for name in cancelled], [])
    else:
        click.echo(f"Cancelled {few(cancelled)}." if cancelled else "Nothing of it moves.")


_COLUMNS = ["partition", "outcome", "leader", "leader_epoch", "note"]


@partition.command()
@click.argument("words", nargs=-1, metavar=f"[{METAVAR}]", shell_complete=partitions)
@click.option("--preferred", is_flag=True, help="The first replica, if in sync. The default.")
@click.option("--unclean", is_flag=True, help="Any live replica; acknowledged records may be lost.")
@click.option("--all", "every", is_flag=True, help="All partitions that need it.")
@options.yes
@options.bootstrap
@options.output
@click.pass_context
def elect(
    context: click.Context,
    words: tuple[str, ...],
    preferred: bool,
    unclean: bool,
    every: bool,
    yes: bool,
    bootstrap: str,
    form: str,
) -> None:
    """Elect leaders. The exit code is 1 if any election was refused.

    \b
    ottla partition elect flights-0
    ottla partition elect --preferred --all
    ottla partition elect --unclean flights-3

    An unclean election is for partitions without a leader whose last in-sync replicas are lost for
    good. Records that only those replicas had are lost.
    """  # noqa: D301
    if preferred and unclean:
        raise click.UsageError("either --preferred or --unclean")
    if every == bool(words):
        raise click.UsageError("name partitions, or say --all")
    kind = ElectionKind.UNCLEAN if unclean else ElectionKind.PREFERRED

    async def look(admin: Admin) -> list[TopicPartition]:
        names = set(await named(admin, words))
        standings = await admin.partitions.describe()
        return [one.name for one in standings if (every or one.name in names) and one.is_offline]

    if unclean and not yes:
        offline = with_admin(bootstrap, look)
        if offline:
            options.confirm(
                f"Elect leaders of {few(offline)} that may lack acknowledged records? What they "
                "lack is lost for ever."
            )

    async def work(admin: Admin) -> list[Election]:
        return await election.elect(admin, kind, None if every else await named(admin, words))

    found = with_admin(bootstrap, work)
    show(form, [_row(one) for one in found], _COLUMNS, empty="all are led as wanted already")
    if any(one.outcome == "refused" for one in found):
        context.exit(1)


def _row(one: Election) -> dict[str, Any]:
    return {
        "partition": str(one.name),
        "outcome": one.outcome,
        "leader": one.leader,
        "leader_epoch": None if one.standing is None else one.standing.leader_epoch,
        "note": one.refusal,
    }


@partition.command()
@click.argument("words", nargs=-1, required=True, metavar=METAVAR, shell_complete=partitions)
@click.option(
    "--brokers", "chosen", type=broker_list, help="Where to; default: all that are alive."
)
@click.option("--replicas", type=click.IntRange(1), help="How many of each; else as many as now.")
@connected
@options.output
async def plan(
    admin: Admin,
    words: tuple[str, ...],
    chosen: tuple[int, ...] | None,
    replicas: int | None,
    form: str,
) -> None:
    """Plan moves of partitions to brokers; nothing moves.

    \b
    ottla partition plan flights --brokers 2,3,4
    ottla partition plan flights planes --replicas 3 -o json > plan.json
    ottla partition reassign --plan plan.json

    Replicas on the chosen brokers stay there. The JSON is that of kafka-reassign-partitions.
    """  # noqa: D301
    found = await plan_placement(admin, await named(admin, words), chosen, replicas)
    if form == "json":
        show_one("json", to_json(found.plan))
        return
    show(form, plans.plan_rows(found), plans.COLUMNS, empty="they are there already")
    if found.moves:
        click.echo(plans.plan_sentence(found))


@partition.command()
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

    async def look(admin: Admin) -> tuple[MovePlan, list[PartitionStatus]]:
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
    """Read the plan in a file. Raises OttlaError(INVALID_REQUEST)."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise bad_plan(str(file), error.strerror or "it cannot be read") from None
    except ValueError as error:
        raise bad_plan(str(file), f"{type(error).__name__} {error}") from None
    return from_json(text, str(file))


def _outcome(plan: MovePlan, *, ended: bool, throttled: bool) -> str:
    """Return a sentence about the outcome of a reassignment."""
    if not plan.moves:
        return "They are there already."
    if ended:
        return f"Done: {plans.plan_sentence(plan)}."
    after = ", `ottla partition unthrottle` removes the throttle after it" if throttled else ""
    return (
        f"Begun: {plans.plan_sentence(plan)}. `ottla partition status` shows how far it is, "
        f"`ottla partition cancel` takes back what has not ended{after}."
    )


@partition.command()
@click.argument("words", nargs=-1, metavar=f"[{METAVAR}]", shell_complete=partitions)
@click.option("--wait", "waits", is_flag=True, help="Return when nothing of it moves any more.")
@connected
@options.output
async def status(admin: Admin, words: tuple[str, ...], waits: bool, form: str) -> None:
    """Show which partitions are moving, and how far they are.

    \b
    ottla partition status
    ottla partition status flights-0 --wait
    """  # noqa: D301
    names = await named(admin, words) if words else None
    if waits:
        await wait(admin, names, plans.on_progress(form))
    rows = plans.status_rows(await under_way(admin, names))
    show(form, rows, plans.STATUS_COLUMNS, empty="nothing moves")


@partition.command()
@connected
async def unthrottle(admin: Admin) -> None:
    """Remove the throttle of moves that have ended.

    \b
    ottla partition unthrottle

    `ottla partition reassign --throttle` leaves its throttle unless it is used with --wait.
    """  # noqa: D301
    throttled = await remove_throttle(admin)
    click.echo(
        f"Nothing is throttled any more; {', '.join(throttled)} was."
        if throttled
        else "No topic was throttled."
    )
