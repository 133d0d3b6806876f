"""`ottla cluster`: who is in it, how it is, and how evenly its load lies."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import click

from ottla.cli import options
from ottla.cli.balance import balance
from ottla.cli.cleaners import cleaner_findings, cleaner_line, cleaner_row
from ottla.cli.connect import with_admin
from ottla.cli.disks import disk_findings
from ottla.cli.health import Finding, counts, findings
from ottla.cli.internal_topics import FACTORS, too_few_replicas
from ottla.cli.output import show, show_one, show_title
from ottla.cli.places import few
from ottla.client.admin import Admin
from ottla.client.admin.cluster import ClusterDescription
from ottla.client.admin.compaction import CleanerStanding
from ottla.client.admin.configs import ResourceKind
from ottla.client.admin.logs import LogDirectory
from ottla.client.admin.partitions import PartitionStanding
from ottla.client.errors import ConnectionFailed, RequestTimedOut

_COLUMNS = ["broker", "address", "rack", "state", "leads", "follows", "not_in_sync"]
# How long `health` waits for a broker that may stand still.
_PATIENCE_S = 5.0


@click.group()
def cluster() -> None:
    """Describe a cluster, tell what is wrong with it, even out its load."""


cluster.add_command(balance)


@cluster.command()
@options.bootstrap
@options.output
def describe(bootstrap: str, form: str) -> None:
    """Describe the cluster: its brokers, what they lead and follow, and what is not in sync.

    \b
    ottla cluster describe
    ottla cluster describe -o json
    """  # noqa: D301

    async def work(admin: Admin) -> tuple[ClusterDescription, list[PartitionStanding]]:
        return await admin.cluster.describe(), await admin.partitions.standings()

    found, standings = with_admin(bootstrap, work)
    rows = _broker_rows(found, standings)
    numbers = counts(standings)
    if form == "json":
        answer = {
            "cluster_id": found.cluster_id,
            "controller": _controller(found),
            "partition_count": len(standings),
            **numbers,
            "brokers": rows,
        }
        show_one("json", answer)
        return
    controller = _controller(found)
    show_title(
        f"cluster {found.cluster_id}  controller {'-' if controller is None else controller}"
    )
    show(form, rows, _COLUMNS)
    click.echo(f"\n{_numbers(len(standings), numbers)}")


@cluster.command()
@options.bootstrap
@options.output
@click.pass_context
def health(context: click.Context, bootstrap: str, form: str) -> None:
    """Tell what is wrong with the cluster, why, and what helps; the exit code is 1 if anything is.

    \b
    ottla cluster health
    ottla cluster health -o json

    Under-replicated: a replica is not in sync. Offline: nobody leads. Under min ISR: acks=all is
    refused. At min ISR: the next loss leads there. Besides: disks that are full or failed,
    internal topics that were made with too few replicas, and logs that a broker fails to compact.
    """  # noqa: D301

    async def work(
        admin: Admin,
    ) -> tuple[ClusterDescription, list[PartitionStanding], list[CleanerStanding], list[Finding]]:
        found = await admin.cluster.describe()
        standings = await admin.partitions.standings()
        has_controller = _controller(found) is not None
        moving = await admin.partitions.reassignments() if has_controller else {}
        live = [broker.broker_id for broker in found.brokers]
        wrong = findings(standings, live, moving, has_controller=has_controller)
        if any(one.name.topic in FACTORS for one in standings):
            wrong += too_few_replicas(standings, len(live), await _factors(admin, live[0]))
        wrong += disk_findings(await _log_directories(admin, live))
        cleaners = await admin.compaction.cleaners()
        return found, standings, cleaners, wrong + cleaner_findings(cleaners)

    found, standings, cleaners, wrong = with_admin(bootstrap, work)
    live = [broker.broker_id for broker in found.brokers]
    controller = _controller(found)
    numbers = counts(standings)
    if form == "json":
        answer = {
            "healthy": not wrong,
            "controller": controller,
            "brokers": live,
            "partition_count": len(standings),
            **numbers,
            "findings": [_finding_row(finding) for finding in wrong],
            "cleaners": [cleaner_row(cleaner) for cleaner in cleaners],
        }
        show_one("json", answer)
    else:
        _tell(wrong, _numbers(len(standings), numbers))
        for line in filter(None, map(cleaner_line, cleaners)):
            click.echo(line)
    if wrong:
        context.exit(1)


@cluster.command()
@options.bootstrap
@options.output
@click.pass_context
def controller(context: click.Context, bootstrap: str, form: str) -> None:
    """Tell which broker controls the cluster; the exit code is 1 if none does.

    \b
    ottla cluster controller
    """  # noqa: D301
    found = with_admin(bootstrap, lambda admin: admin.cluster.describe())
    address = {broker.broker_id: str(broker.address) for broker in found.brokers}
    broker_id = _controller(found)
    if form == "json":
        told = None if broker_id is None else address[broker_id]
        show_one("json", {"controller": broker_id, "address": told})
    elif broker_id is None:
        click.echo("no broker is in office now", err=True)
    else:
        click.echo(f"broker {broker_id} at {address[broker_id]}")
    if broker_id is None:
        context.exit(1)


async def _factors(admin: Admin, broker_id: int) -> dict[str, int]:
    """How many replicas internal topics are meant to have, by the names of the settings."""
    names = list(FACTORS.values())
    told = await admin.configs.describe(ResourceKind.BROKER, str(broker_id), names)
    return {name: int(entry.value) for name, entry in told.items() if entry.value is not None}


async def _log_directories(admin: Admin, live: Iterable[int]) -> list[LogDirectory]:
    """Of the brokers that answer in time; those that stand still are found by other signs."""

    async def ask(broker_id: int) -> list[LogDirectory]:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await admin.logs.directories([broker_id])
        except (ConnectionFailed, RequestTimedOut, TimeoutError):
            return []

    return [one for told in await asyncio.gather(*map(ask, live)) for one in told]


def _controller(found: ClusterDescription) -> int | None:
    """The controller, if it lives."""
    live = {broker.broker_id for broker in found.brokers}
    return found.controller_id if found.controller_id in live else None


def _broker_rows(
    found: ClusterDescription, standings: Iterable[PartitionStanding]
) -> list[dict[str, Any]]:
    """A row per broker; those that have replicas and are down, too."""
    leads: Counter[int] = Counter()
    follows: Counter[int] = Counter()
    out: Counter[int] = Counter()
    for one in standings:
        leads[one.leader] += 1
        follows.update(broker for broker in one.replicas if broker != one.leader)
        out.update(broker for broker in one.replicas if broker not in one.isr)
    live = {broker.broker_id: broker for broker in found.brokers}
    rows: list[dict[str, Any]] = []
    for broker_id in sorted({*live, *follows}):
        broker = live.get(broker_id)
        rows.append(
            {
                "broker": broker_id,
                "address": None if broker is None else str(broker.address),
                "rack": None if broker is None else broker.rack,
                "state": "down" if broker is None else "alive",
                "leads": leads[broker_id],
                "follows": follows[broker_id],
                "not_in_sync": out[broker_id],
            }
        )
    return rows


def _numbers(partitions: int, numbers: Mapping[str, int]) -> str:
    told = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in numbers.items())
    return f"{partitions:,} partitions: {told}".replace("min isr", "min ISR").replace(
        "under replicated", "under-replicated"
    )


def _finding_row(finding: Finding) -> dict[str, Any]:
    return {
        "trouble": finding.trouble,
        "cause": finding.cause,
        "remedy": finding.remedy,
        "partitions": [str(name) for name in finding.partitions],
    }


def _tell(wrong: list[Finding], numbers: str) -> None:
    if not wrong:
        click.secho("all is well", fg="green", bold=True)
    for finding in wrong:
        many = f" ({len(finding.partitions):,})" if finding.partitions else ""
        click.secho(f"{finding.trouble}{many}", fg="red", bold=True)
        click.echo(f"  why   {finding.cause}")
        click.echo(f"  do    {finding.remedy}")
        if finding.partitions:
            click.echo(f"  where {few(finding.partitions)}")
    click.echo(numbers)
