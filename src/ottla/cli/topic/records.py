"""`ottla topic`: shows offsets and sizes of topics, compacts them, and deletes old records."""

from dataclasses import asdict
from typing import Any

import click

from ottla.base.ids import TopicPartition
from ottla.base.quantities import counted, iso, size_words
from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.common.connect import connected, with_admin
from ottla.cli.text.output import show
from ottla.cli.text.places import METAVAR, named
from ottla.cli.text.words import interval, moment, position
from ottla.client.admin import Admin
from ottla.client.admin.compaction import CompactAction, CompactionStatus
from ottla.client.connection.cluster import connections_of
from ottla.client.consumer.offsets import EARLIEST, LATEST
from ottla.diagnosis.partitions import Offsets, offsets_at, topic_sizes
from ottla.diagnosis.record_choice import Position
from ottla.diagnosis.records import resolved
from ottla.operations.topics import compact as compact_now

_OFFSETS_COLUMNS = ["topic", "partition", "start_offset", "end_offset"]
_AT_COLUMNS = [*_OFFSETS_COLUMNS, "offset", "time"]

_ENDS = {"earliest": EARLIEST, "beginning": EARLIEST, "latest": LATEST, "end": LATEST}


def moment_or_end(text: str) -> int:
    """Parse a time, or `earliest` or `latest`, which become their numbers in the protocol."""
    return _ENDS[text] if text in _ENDS else moment(text)


@click.command()
@click.argument("words", nargs=-1, required=True, metavar=METAVAR, shell_complete=topics)
@click.option(
    "--at",
    "time_ms",
    type=moment_or_end,
    metavar="TIME",
    help="Also the first record of then or later; or earliest, or latest.",
)
@connected
@options.output
async def offsets(admin: Admin, words: tuple[str, ...], time_ms: int | None, form: str) -> None:
    """Show where the logs of partitions begin and end. --at adds the offset of a time.

    \b
    ottla topic offsets flights
    ottla topic offsets flights planes-0 --at 10m
    ottla topic offsets flights --at '2024-01-31 09:00' -o json

    A topic's name means all of its partitions. No offset is shown if all records are older than the
    time.
    """  # noqa: D301
    places = await named(admin, words)
    starts = await admin.logs.offsets(dict.fromkeys(places, EARLIEST))
    ends = await admin.logs.offsets(dict.fromkeys(places, LATEST))
    at = {} if time_ms is None else await admin.logs.offsets(dict.fromkeys(places, time_ms))
    rows: list[dict[str, Any]] = []
    for place in places:
        row: dict[str, Any] = {
            "topic": place.topic,
            "partition": place.partition,
            "start_offset": starts[place].offset,
            "end_offset": ends[place].offset,
        }
        if place in at:
            offset, timestamp_ms = at[place].offset, at[place].timestamp_ms
            row["offset"] = offset if offset >= 0 else None
            # The end of a log has no record, and so no timestamp.
            row["timestamp"] = timestamp_ms if timestamp_ms >= 0 else None
            row["time"] = iso(timestamp_ms) if timestamp_ms >= 0 else None
        rows.append(row)
    show(form, rows, _OFFSETS_COLUMNS if time_ms is None else _AT_COLUMNS)


_SIZES_COLUMNS = ["name", "partition_count", "leader_bytes", "replica_bytes"]


@click.command()
@click.argument("names", nargs=-1, metavar="[TOPIC]...", shell_complete=topics)
@connected
@options.output
async def sizes(admin: Admin, names: tuple[str, ...], form: str) -> None:
    """Show how much disk topics take, the largest first.

    \b
    ottla topic sizes
    ottla topic sizes flights planes -o json

    Leader bytes are those of one copy, replica bytes those of all copies on living brokers;
    `ottla cluster log-dirs` shows them by broker and folder.
    """  # noqa: D301
    found = await topic_sizes(admin, names or None)
    rows = [asdict(one) for one in found]
    for row in rows if form != "json" else ():
        row.update({name: size_words(row[name]) for name in _SIZES_COLUMNS[2:]})
    show(form, rows, _SIZES_COLUMNS, empty="there are no topics")


_ESTIMATE_COLUMNS = [
    "partition",
    "broker",
    "dirty_bytes",
    "records",
    "would_go",
    "bytes",
    "would_free",
]
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
    """Compact TOPIC: keep only the latest record of each key.

    \b
    ottla topic compact planes --dry-run
    ottla topic compact planes --now --wait

    Brokers compact by themselves when enough of a log is dirty: see `ottla why compaction
    planes-0`. Every replica is compacted on its own broker. Records that min.compaction.lag.ms
    protects stay.
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
    async def work(admin: Admin) -> list[CompactionStatus]:
        return await admin.compaction.describe_topic(name, CompactAction.ESTIMATE)

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
    show(form, rows, _ESTIMATE_COLUMNS)
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


_DELETION_COLUMNS = ["topic", "partition", "old_start", "new_start", "deleted"]


@click.command(name="delete-records")
@click.argument("words", nargs=-1, required=True, metavar=METAVAR, shell_complete=topics)
@click.option(
    "--before",
    type=position,
    required=True,
    metavar="PLACE",
    help="An offset, a time, -N (the last N stay), or latest: none stays.",
)
@options.yes
@options.bootstrap
@options.output
def delete_records(
    words: tuple[str, ...], before: Position, yes: bool, bootstrap: str, form: str
) -> None:
    """Delete the records of partitions below an offset. This cannot be undone.

    \b
    ottla topic delete-records flights-0 --before 1234
    ottla topic delete-records flights --before 7d
    ottla topic delete-records flights planes --before latest --yes

    A topic's name means all of its partitions. The logs begin at that offset from then on; disk
    space is freed segment by segment.
    """  # noqa: D301

    async def look(admin: Admin) -> tuple[Offsets, Offsets]:
        cluster, places = connections_of(admin), await named(admin, words)
        starts = await offsets_at(cluster, places, EARLIEST)
        if before.kind == "offset":
            # A broker refuses an offset beyond the end.
            return starts, {place: max(starts[place], before.number) for place in places}
        return starts, await resolved(cluster, places, before)

    starts, wanted = with_admin(bootstrap, look)
    if not yes:
        count = sum(offset - starts[place] for place, offset in wanted.items())
        options.confirm(
            f"Delete the records of {counted(count, 'offset')} in "
            f"{counted(len(wanted), 'partition')}? They are lost for ever."
        )
    done = with_admin(bootstrap, lambda admin: admin.logs.delete_records(wanted))
    rows = [_deletion_row(place, starts[place], new) for place, new in sorted(done.items())]
    show(form, rows, _DELETION_COLUMNS)


def _deletion_row(place: TopicPartition, old: int, new: int) -> dict[str, object]:
    return {
        "topic": place.topic,
        "partition": place.partition,
        "old_start": old,
        "new_start": new,
        "deleted": new - old,
    }
