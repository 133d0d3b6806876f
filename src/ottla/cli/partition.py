"""`ottla partition`: who leads a partition, and on which brokers it lies."""

from pathlib import Path
from typing import Any

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.cli import moving, options
from ottla.cli.amount import bytes_per_s
from ottla.cli.connect import with_admin
from ottla.cli.elect import elect
from ottla.cli.output import show, show_one
from ottla.cli.places import METAVAR, broker_list, few, named
from ottla.cli.unthrottle import remove_throttle, throttle, unthrottle
from ottla.client.admin import Admin
from ottla.client.admin.partitions import PartitionStanding
from ottla.controller.balance import onto

_STATUS_COLUMNS = ["partition", "to", "coming", "going", "copied", "bytes_left"]


@click.group()
def partition() -> None:
    """Elect leaders of partitions, and move partitions to other brokers."""


partition.add_command(elect)
partition.add_command(unthrottle)


@partition.command()
@click.argument("words", nargs=-1, required=True, metavar=METAVAR)
@click.option("--brokers", "chosen", type=broker_list, help="Where to; default: all that live.")
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
    """Plan where partitions could lie; nothing moves.

    \b
    ottla partition plan flights --brokers 2,3,4
    ottla partition plan flights planes --replicas 3 -o json > plan.json
    ottla partition reassign --plan plan.json

    What lies on the chosen brokers stays there. The JSON is that of kafka-reassign-partitions.
    """  # noqa: D301

    async def work(admin: Admin) -> tuple[moving.Plan, list[dict[str, Any]]]:
        names = await named(admin, words)
        found = await admin.cluster.describe()
        racks = {broker.broker_id: broker.rack for broker in found.brokers}
        strange = [broker for broker in chosen or () if broker not in racks]
        if strange:
            raise OttlaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"broker {strange[0]} is not alive; there are {sorted(racks)}",
            )
        standings = await _standings(admin, names)
        lists = {one.name: one.replicas for one in standings}
        targets = {b: rack for b, rack in racks.items() if chosen is None or b in chosen}
        found_plan = onto(lists, targets, replicas)
        return found_plan, moving.plan_rows(found_plan, standings, await moving.sizes(admin))

    found, rows = with_admin(bootstrap, work)
    if form == "json":
        show_one("json", moving.plan_text(found))
        return
    show(form, rows, moving.PLAN_COLUMNS, empty="they lie so already")
    if rows:
        click.echo(moving.plan_sentence(rows))


@partition.command()
@click.argument("words", nargs=-1, metavar=f"[{METAVAR}]")
@click.option("--to", "target", type=broker_list, metavar="1,2,3", help="The first shall lead.")
@click.option(
    "--plan",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file in the form of `partition plan -o json` and kafka-reassign-partitions.",
)
@click.option("--wait", is_flag=True, help="Return when all is moved, and led by the first.")
@click.option(
    "--throttle",
    "rate",
    type=bytes_per_s,
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
    wait: bool,
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

    standings: list[PartitionStanding] = []

    async def look(admin: Admin) -> tuple[moving.Plan, list[dict[str, Any]]]:
        if file is not None:
            wanted = moving.read_plan(file)
        else:
            assert target is not None
            wanted = dict.fromkeys(await named(admin, words), target)
        standings.extend(await _standings(admin, list(wanted)))
        changed = {
            one.name: wanted[one.name]
            for one in standings
            if one.name in wanted and one.replicas != tuple(wanted[one.name])
        }
        return changed, moving.plan_rows(changed, standings, await moving.sizes(admin))

    changed, rows = with_admin(bootstrap, look)
    if changed and not yes:
        show("table", rows, moving.PLAN_COLUMNS)
        options.confirm(f"{moving.plan_sentence(rows)}. Do that?")

    async def work(admin: Admin) -> None:
        if rate is not None:
            await throttle(admin, changed, standings, rate)
        await moving.begin(admin, changed)
        if wait:
            await moving.wait(admin, changed, moving.teller(form))
            await moving.lead_first(admin, list(changed))
            if rate is not None:
                await remove_throttle(admin)

    if changed:
        with_admin(bootstrap, work)
    if form == "json":
        show("json", rows, [])
    else:
        click.echo(_outcome(rows, ended=wait, throttled=rate is not None))


@partition.command()
@click.argument("words", nargs=-1, metavar=f"[{METAVAR}]")
@click.option("--wait", is_flag=True, help="Return when nothing of it moves any more.")
@options.bootstrap
@options.output
def status(words: tuple[str, ...], wait: bool, bootstrap: str, form: str) -> None:
    """Tell which partitions are moving, and how far they are.

    \b
    ottla partition status
    ottla partition status flights-0 --wait
    """  # noqa: D301

    async def work(admin: Admin) -> list[dict[str, Any]]:
        names = await named(admin, words) if words else None
        if wait:
            await moving.wait(admin, names, moving.teller(form))
        moves = await admin.partitions.reassignments(names)
        return moving.status_rows(moves, await moving.sizes(admin)) if moves else []

    show(form, with_admin(bootstrap, work), _STATUS_COLUMNS, empty="nothing moves")


@partition.command()
@click.argument("words", nargs=-1, metavar=f"[{METAVAR}]")
@click.option("--all", "every", is_flag=True, help="All that move.")
@options.bootstrap
@options.output
def cancel(words: tuple[str, ...], every: bool, bootstrap: str, form: str) -> None:
    """Cancel moves that have not ended: partitions go back to where they were.

    \b
    ottla partition cancel flights-0
    ottla partition cancel --all
    """  # noqa: D301
    if every == bool(words):
        raise click.UsageError("name partitions, or say --all")

    async def work(admin: Admin) -> list[TopicPartition]:
        names = await named(admin, words) if words else None
        moves = sorted(await admin.partitions.reassignments(names))
        if moves:
            await moving.begin(admin, dict.fromkeys(moves))
        return moves

    cancelled = with_admin(bootstrap, work)
    if form == "json":
        show("json", [{"partition": str(name), "cancelled": True} for name in cancelled], [])
    else:
        click.echo(f"Cancelled {few(cancelled)}." if cancelled else "Nothing of it moves.")


async def _standings(admin: Admin, names: list[TopicPartition]) -> list[PartitionStanding]:
    """How `names` stand. Raises UNKNOWN_TOPIC_OR_PARTITION."""
    found = await admin.partitions.standings(sorted({name.topic for name in names}))
    known = {one.name: one for one in found}
    missing = [name for name in names if name not in known]
    if missing:
        raise OttlaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"there is no partition {missing[0]}; see `ottla topic describe {missing[0].topic}`",
        )
    return [known[name] for name in names]


def _outcome(rows: list[dict[str, Any]], *, ended: bool, throttled: bool) -> str:
    """What became of a reassignment, for people."""
    if not rows:
        return "They lie so already."
    if ended:
        return f"Done: {moving.plan_sentence(rows)}."
    after = ", `ottla partition unthrottle` removes the throttle after it" if throttled else ""
    return (
        f"Begun: {moving.plan_sentence(rows)}. `ottla partition status` tells how far it is, "
        f"`ottla partition cancel` takes back what has not ended{after}."
    )
