"""`ottla topic compact`: what compaction would free, or compaction at once."""

import click

from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show
from ottla.cli.text.words import interval
from ottla.client.admin import Admin
from ottla.client.admin.compaction import CompactAction, CompactionStanding
from ottla.operations.compaction import compact as compact_now

_COLUMNS = ["partition", "broker", "dirty_bytes", "records", "would_go", "bytes", "would_free"]
_DONE_COLUMNS = ["partition", "broker", "clean_up_to", "records_kept", "bytes_kept", "seconds"]


@click.command()
@click.argument("name", metavar="TOPIC", shell_complete=topics)
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and change nothing.")
@click.option("--now", is_flag=True, help="Compact whatever the dirty ratio is.")
@click.option("--wait", "waits", is_flag=True, help="With --now: return when it is done.")
@click.option("--timeout", type=interval, default="10m", help="How long to wait at most.")
@options.bootstrap
@options.output
def compact(
    name: str, dry_run: bool, now: bool, waits: bool, timeout: int, bootstrap: str, form: str
) -> None:
    """Compact TOPIC: of each key only the latest record stays.

    \b
    ottla topic compact planes --dry-run
    ottla topic compact planes --now --wait

    Brokers do it by themselves when enough is dirty; `ottla why compaction planes-0` shows. Every
    replica is compacted where it is. What min.compaction.lag.ms protects stays.
    """  # noqa: D301
    if dry_run == now:
        raise click.UsageError("say --dry-run, or --now")
    if waits and not now:
        raise click.UsageError("--wait goes with --now")
    if dry_run:
        _estimate(name, bootstrap, form)
    else:
        _compact_now(name, bootstrap, form, timeout / 1000 if waits else None)


def _estimate(name: str, bootstrap: str, form: str) -> None:
    async def work(admin: Admin) -> list[CompactionStanding]:
        return await admin.compaction.of_topic(name, CompactAction.ESTIMATE)

    rows = []
    for one in with_admin(bootstrap, work):
        pass_ = one.estimate
        rows.append(
            {
                "partition": one.name.partition,
                "broker": one.broker_id,
                "dirty_bytes": one.dirty_bytes,
                "records": pass_.records_read if pass_ else 0,
                "would_go": pass_.records_read - pass_.records_kept if pass_ else 0,
                "bytes": pass_.bytes_read if pass_ else 0,
                "would_free": pass_.bytes_read - pass_.bytes_kept if pass_ else 0,
            }
        )
    show(form, rows, _COLUMNS)
    if form != "json":
        click.echo("Nothing was changed. The active segment of each log is not counted.")


def _compact_now(name: str, bootstrap: str, form: str, timeout_s: float | None) -> None:
    standings = with_admin(bootstrap, lambda admin: compact_now(admin, name, timeout_s=timeout_s))
    if timeout_s is None:
        click.echo(f"The brokers of {name} compact it now; `ottla why compaction` shows how far.")
        return
    rows = [
        {
            "partition": one.name.partition,
            "broker": one.broker_id,
            "clean_up_to": one.first_dirty,
            "records_kept": one.last.records_kept if one.last else None,
            "bytes_kept": one.last.bytes_kept if one.last else None,
            "seconds": round(one.last.elapsed_ms / 1000, 1) if one.last else None,
        }
        for one in standings
    ]
    show(form, rows, _DONE_COLUMNS)
