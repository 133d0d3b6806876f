"""`ottla topic compact` and `ottla why compaction`: what the brokers' cleaners do, and why not."""

import asyncio
from dataclasses import asdict
from typing import Any

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.cli import options
from ottla.cli.connect import with_admin
from ottla.cli.moment import iso
from ottla.cli.output import show, show_one, show_title
from ottla.cli.places import place
from ottla.cli.settings import SOURCE_WORDS
from ottla.client.admin import Admin
from ottla.client.admin.compaction import CleaningPass, CompactAction, CompactionStanding
from ottla.client.admin.configs import ResourceKind

_COLUMNS = ["partition", "broker", "dirty_bytes", "records", "would_go", "bytes", "would_free"]
_DONE_COLUMNS = ["partition", "broker", "clean_up_to", "records_kept", "bytes_kept", "seconds"]
_POLL_S = 0.1
_POLICY = "cleanup.policy"


@click.command()
@click.argument("name", metavar="TOPIC")
@click.option("--dry-run", is_flag=True, help="Say what would go, and change nothing.")
@click.option("--now", is_flag=True, help="Compact whatever the dirty ratio is.")
@click.option("--wait", "waits", is_flag=True, help="With --now: return when it is done.")
@click.option("--timeout", type=click.IntRange(1), default=600, help="Seconds to wait at most.")
@options.bootstrap
@options.output
def compact(
    name: str, dry_run: bool, now: bool, waits: bool, timeout: int, bootstrap: str, form: str
) -> None:
    """Compact the topic TOPIC: of each key only the latest record stays.

    \b
    ottla topic compact planes --dry-run
    ottla topic compact planes --now --wait

    Brokers do it by themselves when enough is dirty; `ottla why compaction planes-0` tells. Every
    replica is compacted where it is. What min.compaction.lag.ms protects stays.
    """  # noqa: D301
    if dry_run == now:
        raise click.UsageError("say --dry-run, or --now")
    if waits and not now:
        raise click.UsageError("--wait goes with --now")
    if dry_run:
        _estimate(name, bootstrap, form)
    else:
        _compact_now(name, bootstrap, form, timeout if waits else None)


def _estimate(name: str, bootstrap: str, form: str) -> None:
    async def work(admin: Admin) -> list[CompactionStanding]:
        return await admin.compaction.of_topic(name, CompactAction.ESTIMATE)

    rows = []
    for one in with_admin(bootstrap, work):
        told = one.estimate
        rows.append(
            {
                "partition": one.name.partition,
                "broker": one.broker_id,
                "dirty_bytes": one.dirty_bytes,
                "records": told.records_read if told else 0,
                "would_go": told.records_read - told.records_kept if told else 0,
                "bytes": told.bytes_read if told else 0,
                "would_free": told.bytes_read - told.bytes_kept if told else 0,
            }
        )
    show(form, rows, _COLUMNS)
    if form != "json":
        click.echo("Nothing was changed. The active segment of each log is not counted.")


def _compact_now(name: str, bootstrap: str, form: str, timeout_s: int | None) -> None:
    async def work(admin: Admin) -> list[CompactionStanding]:
        standings = await admin.compaction.of_topic(name, CompactAction.CLEAN)
        if timeout_s is None:
            return standings
        deadline_s = asyncio.get_running_loop().time() + timeout_s
        while not all(_is_done(one) for one in standings):
            if asyncio.get_running_loop().time() >= deadline_s:
                waiting = sorted({str(one.name) for one in standings if not _is_done(one)})
                raise OttlaError(
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"not compacted after {timeout_s} s: {', '.join(waiting)}; "
                    f"`ottla why compaction {waiting[0]}` tells what holds it up",
                )
            await asyncio.sleep(_POLL_S)
            standings = await admin.compaction.of_topic(name)
        return standings

    standings = with_admin(bootstrap, work)
    if timeout_s is None:
        click.echo(f"The brokers of {name} compact it now; `ottla why compaction` tells how far.")
        return
    failed = [f"broker {one.broker_id}: {one.failure}" for one in standings if one.failure]
    if failed:
        raise OttlaError(ErrorCode.UNKNOWN_SERVER_ERROR, "; ".join(failed))
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


def _is_done(one: CompactionStanding) -> bool:
    return one.wanted_end < 0 and not one.is_running


@click.command()
@click.argument("name", type=place, metavar="TOPIC-P")
@options.bootstrap
@options.output
def compaction(name: TopicPartition, bootstrap: str, form: str) -> None:
    """Tell why a log is compacted, or is not.

    \b
    ottla why compaction planes-0
    ottla why compaction planes-0 -o json
    """  # noqa: D301

    async def work(admin: Admin) -> tuple[str, list[CompactionStanding]]:
        entry = (await admin.configs.describe(ResourceKind.TOPIC, name.topic, [_POLICY]))[_POLICY]
        await admin.connections.partition(name)
        if "compact" not in (entry.value or ""):
            source = SOURCE_WORDS[entry.source]
            return f"{_POLICY} is {entry.value or 'empty'} (set by: {source})", []
        return "", await admin.compaction.of(name)

    not_compacted, standings = with_admin(bootstrap, work)
    if not_compacted:
        _say_not_compacted(name, not_compacted, form)
        return
    if form == "json":
        show_one("json", {"partition": str(name), "replicas": [_answer(o) for o in standings]})
        return
    for one in standings:
        show_title(f"{name} on broker {one.broker_id}: {verdict(one)}")
        for line in evidence(one):
            click.echo(f"  {line}")


def _say_not_compacted(name: TopicPartition, why: str, form: str) -> None:
    said = f"not compacted: {why}"
    if form == "json":
        show_one("json", {"partition": str(name), "verdict": said, "replicas": []})
        return
    show_title(f"{name}: {said}")
    click.echo(
        f"  to compact it: `ottla config set topic {name.topic} {_POLICY}=compact`; of each key "
        "only the latest record stays then"
    )


def verdict(one: CompactionStanding) -> str:
    """One sentence: what the cleaner does about this log, and why."""
    if not one.is_enabled:
        return "not compacted: log.cleaner.enable is false, or log.cleaner.threads is 0"
    if one.is_running:
        return "being compacted now"
    if one.failure is not None:
        return f"not compacted, the last attempt failed: {one.failure}"
    if one.wanted_end >= 0:
        return f"waits to be compacted up to offset {one.wanted_end}, as somebody asked for"
    if not one.dirty_bytes:
        return "nothing to compact"
    if one.is_overdue:
        return "due: records are older than max.compaction.lag.ms"
    if one.ratio > one.ratio_min:
        return "due: next in turn"
    return (
        f"not due: {one.ratio:.0%} of it is dirty, min.cleanable.dirty.ratio is {one.ratio_min:g}"
    )


def evidence(one: CompactionStanding) -> list[str]:
    """What speaks for the verdict, line by line."""
    lines = [
        f"offsets    {one.log_start_offset} to {one.log_end_offset}; clean below "
        f"{one.first_dirty}, may be cleaned below {one.end}",
        f"bytes      {one.clean_bytes:,} clean, {one.dirty_bytes:,} dirty",
    ]
    if one.end < one.log_end_offset:
        lines.insert(1, f"held up by {one.bound}")
    if one.last is not None:
        lines.append(f"last pass  {_told(one.last)}; {one.pass_count} since the broker's start")
    else:
        lines.append("last pass  none since the broker's start")
    return lines


def _told(one: CleaningPass) -> str:
    return (
        f"{iso(one.at_ms)}, {one.elapsed_ms / 1000:.1f} s: {one.records_kept:,} of "
        f"{one.records_read:,} records and {one.bytes_kept:,} of {one.bytes_read:,} bytes stayed"
    )


def _answer(one: CompactionStanding) -> dict[str, Any]:
    told = asdict(one)
    del told["name"]
    return {**told, "ratio": one.ratio, "verdict": verdict(one)}
