"""`ottla cluster`: its brokers, its health, its balance."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import click

from ottla.base.quantities import counted, iso, size_words
from ottla.cli.common import options
from ottla.cli.common.connect import connected, with_admin
from ottla.cli.text import plans, words
from ottla.cli.text.output import show, show_one, show_title
from ottla.cli.text.places import few
from ottla.client.admin import Admin
from ottla.client.admin.compaction import CleanerStatus
from ottla.client.admin.logs import LogDirectory
from ottla.diagnosis import cluster as cluster_diagnosis
from ottla.diagnosis.cluster import BrokerLoad, ClusterHealth, broker_loads, live_controller
from ottla.diagnosis.health import HealthFinding, counts
from ottla.operations.moves import to_json
from ottla.operations.placement import BalancePlan, plan_balance
from ottla.operations.placement import balance as apply_balance
from ottla.operations.readiness import Proof
from ottla.operations.readiness import ready as wait_until_ready


@click.group()
def cluster() -> None:
    """Describe a cluster, find what is wrong with it, even out its load."""


@cluster.command()
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

    As few replicas as possible move, and none into a rack that has another replica of the
    partition. Leadership returns to the first replica of each partition.
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
    with_admin(bootstrap, lambda admin: apply_balance(admin, plan, at_once, on_done))
    if form == "json":
        given_back = [str(name) for name in plan.given_back]
        show_one("json", {"moved": plans.plan_rows(plan.moves), "given_back": given_back})
    elif plan:
        click.echo(f"The load is even: {_balance_sentence(plan)}.")
    else:
        click.echo("The load is even already.")


def _show_plan(form: str, plan: BalancePlan) -> None:
    if form == "json":
        show_one("json", to_json(plan.moves.plan))
        return
    empty = "" if plan.given_back else "the load is even already"
    show(form, plans.plan_rows(plan.moves), plans.COLUMNS, empty=empty)
    if plan:
        click.echo(_balance_sentence(plan))


def _balance_sentence(plan: BalancePlan) -> str:
    parts = [plans.plan_sentence(plan.moves)] if plan.moves.moves else []
    if plan.given_back:
        parts.append(f"{len(plan.given_back):,} partitions are given back to their first replicas")
    return "; ".join(parts)


@cluster.command()
@connected
@options.output
@click.pass_context
async def controller(context: click.Context, admin: Admin, form: str) -> None:
    """Show which broker controls the cluster. The exit code is 1 if none does.

    \b
    ottla cluster controller
    """  # noqa: D301
    found = await admin.cluster.describe()
    addresses = {broker.broker_id: str(broker.address) for broker in found.brokers}
    broker_id = live_controller(found)
    if form == "json":
        address = None if broker_id is None else addresses[broker_id]
        show_one("json", {"controller": broker_id, "address": address})
    elif broker_id is None:
        click.echo("no broker is controller now", err=True)
    else:
        click.echo(f"broker {broker_id} at {addresses[broker_id]}")
    if broker_id is None:
        context.exit(1)


_BROKER_COLUMNS = ["broker", "address", "rack", "state", "leads", "follows", "not_in_sync"]


@cluster.command()
@connected
@options.output
async def describe(admin: Admin, form: str) -> None:
    """Describe the cluster: its brokers, what they lead and follow.

    \b
    ottla cluster describe
    ottla cluster describe -o json
    """  # noqa: D301
    found, standings = await admin.cluster.describe(), await admin.partitions.describe()
    rows = [_broker_row(load) for load in broker_loads(found, standings)]
    numbers = counts(standings)
    controller = live_controller(found)
    if form == "json":
        answer = {
            "cluster_id": found.cluster_id,
            "controller": controller,
            "partition_count": len(standings),
            **numbers,
            "brokers": rows,
        }
        show_one("json", answer)
        return
    show_title(
        f"cluster {found.cluster_id}  controller {'-' if controller is None else controller}"
    )
    show(form, rows, _BROKER_COLUMNS)
    click.echo(f"\n{numbers_sentence(len(standings), numbers)}")


def _broker_row(load: BrokerLoad) -> dict[str, Any]:
    return {
        "broker": load.broker_id,
        "address": load.address,
        "rack": load.rack,
        "state": "alive" if load.is_alive else "down",
        "leads": load.leads,
        "follows": load.follows,
        "not_in_sync": load.not_in_sync,
    }


@cluster.command()
@connected
@options.output
@click.pass_context
async def health(context: click.Context, admin: Admin, form: str) -> None:
    """Show what is wrong with the cluster, why, and what helps. The exit code is 1 if anything is.

    \b
    ottla cluster health
    ottla cluster health -o json

    Under-replicated: a replica is not in sync. Offline: there is no leader. Under min ISR: acks=all
    is refused. At min ISR: acks=all is refused if one more replica leaves the ISR. Also shown:
    disks that are full or failed, internal topics that were created with too few replicas, and
    logs that a broker fails to compact.
    """  # noqa: D301
    found = await cluster_diagnosis.health(admin)
    if form == "json":
        show_one("json", _health_answer(found))
    else:
        _show_health(found)
    if found.findings:
        context.exit(1)


def _health_answer(found: ClusterHealth) -> dict[str, Any]:
    return {
        "healthy": not found.findings,
        "controller": found.controller,
        "brokers": list(found.live),
        "partition_count": found.partition_count,
        **found.counts,
        "findings": [_finding_row(finding) for finding in found.findings],
        "cleaners": [cleaner_row(cleaner) for cleaner in found.cleaners],
    }


def _finding_row(finding: HealthFinding) -> dict[str, Any]:
    return {
        "trouble": finding.trouble,
        "cause": finding.cause,
        "remedy": finding.remedy,
        "partitions": [str(name) for name in finding.partitions],
    }


def _show_health(found: ClusterHealth) -> None:
    if not found.findings:
        click.secho("all is well", fg="green", bold=True)
    for finding in found.findings:
        many = f" ({len(finding.partitions):,})" if finding.partitions else ""
        click.secho(f"{finding.trouble}{many}", fg="red", bold=True)
        click.echo(f"  why   {finding.cause}")
        click.echo(f"  do    {finding.remedy}")
        if finding.partitions:
            click.echo(f"  where {few(finding.partitions)}")
    click.echo(numbers_sentence(found.partition_count, found.counts))
    for line in filter(None, map(cleaner_line, found.cleaners)):
        click.echo(line)


def cleaner_line(cleaner: CleanerStatus) -> str | None:
    """Return a cleaner's state in one line; None if it has no log to compact."""
    if not cleaner.logs:
        return None
    parts = [f"cleaner of broker {cleaner.broker_id}: {counted(cleaner.logs, 'log')}"]
    parts.append(f"{cleaner.running} being compacted")
    parts.append(f"{cleaner.due} due" + (f" ({cleaner.due_bytes:,} bytes)" * bool(cleaner.due)))
    if cleaner.last is None:
        parts.append("no pass since the broker's start")
    else:
        took = f"in {cleaner.last_elapsed_ms / 1000:.1f} s"
        parts.append(f"last pass {cleaner.last} at {iso(cleaner.last_at_ms)} {took}")
    return ", ".join(parts)


def cleaner_row(cleaner: CleanerStatus) -> dict[str, Any]:
    """Return the whole state of a broker's cleaner."""
    last = None
    if cleaner.last is not None:
        last = {
            "partition": str(cleaner.last),
            "at": iso(cleaner.last_at_ms),
            "elapsed_ms": cleaner.last_elapsed_ms,
        }
    return {
        "broker": cleaner.broker_id,
        "enabled": cleaner.threads > 0,
        "logs": cleaner.logs,
        "running": cleaner.running,
        "due": cleaner.due,
        "due_bytes": cleaner.due_bytes,
        "passes": cleaner.passes,
        "failures": cleaner.failures,
        "last_pass": last,
        "failed": [
            {
                "partition": str(failed.name),
                "why": failed.why,
                "attempts": failed.attempts,
                "since": iso(failed.since_ms),
                "retry_at": iso(failed.retry_at_ms),
            }
            for failed in cleaner.failed
        ],
    }


@cluster.command()
@click.option("--prove", is_flag=True, help="Write a record to each broker, and read it back.")
@click.option(
    "--brokers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How many must be alive.",
)
@click.option(
    "--timeout", type=words.span, default="30s", show_default=True, help="How long to try."
)
@options.bootstrap
@options.output
@click.pass_context
def ready(
    context: click.Context, prove: bool, brokers: int, timeout: int, bootstrap: str, form: str
) -> None:
    """Wait until the cluster is ready, or say what is not.

    \b
    ottla cluster ready
    ottla cluster ready --prove --brokers 3 --timeout 2m

    Ready: every broker answers, and every partition has a leader. With --prove, a record was also
    written to each broker with acks=all, is on all replicas, and was read back. The records are in
    the topic __ottla_canary, which is created on first use. Their times show the brokers' clocks.
    If the cluster is not ready in time, the exit code is 1.
    """  # noqa: D301
    proofs = asyncio.run(wait_until_ready(bootstrap, brokers, timeout / 1000, proves=prove))
    failed = any(proof.failure is not None for proof in proofs)
    if form == "json":
        show_one("json", {"ready": not failed, "brokers": [asdict(proof) for proof in proofs]})
    else:
        for proof in proofs:
            click.echo(f"broker {proof.broker_id}: {_proof_words(proof, is_proven=prove)}")
    if failed:
        context.exit(1)


def _proof_words(proof: Proof, *, is_proven: bool) -> str:
    if proof.failure is not None:
        return f"not ready: {proof.failure}"
    if not is_proven:
        return "ready"
    return (
        f"ready: written to {', '.join(map(str, proof.replicas))} in {proof.written_ms:.1f} ms,"
        f" read back in {proof.read_ms:.1f} ms; its clock is {proof.clock_ms:+.0f} ms from this"
        f" machine's, give or take {proof.written_ms / 2:.0f}"
    )


_DIRECTORY_COLUMNS = ["broker", "path", "replicas", "logs", "usable", "total"]


@cluster.command(name="log-dirs")
@click.option(
    "--broker", "brokers", multiple=True, type=int, metavar="ID", help="Only of this one."
)
@connected
@options.output
async def log_dirs(admin: Admin, brokers: tuple[int, ...], form: str) -> None:
    """Show the brokers' log directories, their sizes and disks.

    \b
    ottla cluster log-dirs
    ottla cluster log-dirs --broker 1 -o json

    With -o json it also shows the bytes of each partition.
    """  # noqa: D301
    found = await admin.logs.directories(brokers or None)
    show(
        form,
        [_directory_row(one) if form == "json" else _directory_cells(one) for one in found],
        _DIRECTORY_COLUMNS,
    )


def _directory_row(one: LogDirectory) -> dict[str, Any]:
    return {
        "broker": one.broker_id,
        "path": one.path,
        "bytes": sum(one.partition_bytes.values()),
        "usable_bytes": one.usable_bytes,
        "total_bytes": one.total_bytes,
        "partitions": [
            {"topic": place.topic, "partition": place.partition, "bytes": size}
            for place, size in sorted(one.partition_bytes.items())
        ],
    }


def _directory_cells(one: LogDirectory) -> dict[str, Any]:
    return {
        "broker": one.broker_id,
        "path": one.path,
        "replicas": len(one.partition_bytes),
        "logs": size_words(sum(one.partition_bytes.values())),
        # Kafka before 3.3 does not report the space of the disk.
        "usable": None if one.usable_bytes < 0 else size_words(one.usable_bytes),
        "total": None if one.total_bytes < 0 else size_words(one.total_bytes),
    }


def numbers_sentence(partitions: int, numbers: Mapping[str, int]) -> str:
    """Return a sentence with the number of partitions, and of those in each kind of trouble."""
    listed = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in numbers.items())
    return f"{counted(partitions, 'partition')}: {listed}".replace("min isr", "min ISR").replace(
        "under replicated", "under-replicated"
    )
