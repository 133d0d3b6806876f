"""`ottla group reset`: moves a group's committed offsets; shows the changes first."""

import shlex
from collections.abc import Sequence
from typing import Any

import click

from ottla.base.ids import TopicPartition
from ottla.cli.common import options
from ottla.cli.common.completion import groups
from ottla.cli.common.completion import topics as complete_topics
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show, show_one
from ottla.cli.text.words import moment
from ottla.client.admin import Admin
from ottla.operations.group_offsets import (
    OffsetMove,
    OffsetPlan,
    OffsetTarget,
    apply,
    planned,
)

_COLUMNS = ["topic", "partition", "start_offset", "old", "new", "end_offset", "change", "note"]
_FORGET = "none"


@click.command()
@click.argument("group_id", metavar="GROUP", shell_complete=groups)
@click.option("--to-earliest", is_flag=True, help="To the first record there is.")
@click.option("--to-latest", is_flag=True, help="To the end: skip all there is.")
@click.option(
    "--to-offset",
    "offsets",
    multiple=True,
    metavar="OFFSET",
    help="To this offset; TOPIC:PARTITION=OFFSET for one partition (none forgets it).",
)
@click.option(
    "--to-time",
    "time_ms",
    type=moment,
    metavar="TIME",
    help="To the first record at or after a time: 10m (ago), 2024-01-31T09:00, @MS.",
)
@click.option("--by", type=int, metavar="N", help="Forward by N records, back by -N.")
@click.option(
    "--topic",
    "-t",
    "topics",
    multiple=True,
    shell_complete=complete_topics,
    metavar="TOPIC[:P,P…]",
    help="Only this topic, or these partitions. Default: all with a committed offset.",
)
@click.option("--execute", "--yes", "-y", "execute", is_flag=True, help="Do it.")
@options.bootstrap
@options.output
def reset(
    group_id: str,
    to_earliest: bool,
    to_latest: bool,
    offsets: tuple[str, ...],
    time_ms: int | None,
    by: int | None,
    topics: tuple[str, ...],
    execute: bool,
    bootstrap: str,
    form: str,
) -> None:
    """Move where GROUP resumes. Shows what would change; --execute does it.

    \b
    ottla group reset audit --to-earliest
    ottla group reset audit --to-time 'yesterday 09:00' --topic flights --execute
    ottla group reset audit --by -100 --topic flights:0,2
    ottla group reset audit --to-offset flights:0=1234 --execute
    ottla group reset workers --to-latest --execute

    The group must have no members. Afterwards the command that undoes it is printed. Of a share
    group it moves the start offset: records from there on that were acknowledged come again.
    """  # noqa: D301
    wanted = [_topic(text) for text in topics]
    target = _target(to_earliest, to_latest, offsets, time_ms, by)
    if target.singles and topics:
        raise click.UsageError("--to-offset names the partitions already; leave out --topic")

    async def work(admin: Admin) -> OffsetPlan:
        plan = await planned(admin, group_id, target, wanted)
        if execute:
            await apply(admin, group_id, plan)
        return plan

    plan = with_admin(bootstrap, work)
    rows = [_row(move) for move in plan.moves]
    undo = _undo(group_id, plan.undoing, bootstrap)
    if form == "json":
        show_one("json", {"group": group_id, "executed": execute, "partitions": rows, "undo": undo})
        return
    show(form, rows, _COLUMNS, empty="its topics are gone")
    if not execute:
        click.echo("\nNothing is changed yet; the same with --execute does it.")
    elif undo:
        click.echo(f"\nDone. To undo it:\n  {undo}")
    else:
        click.echo("\nNothing to do: the group stands there already.")


def _target(
    earliest: bool, latest: bool, offsets: tuple[str, ...], time_ms: int | None, by: int | None
) -> OffsetTarget:
    ways = (earliest, latest, bool(offsets), time_ms is not None, by is not None)
    if sum(ways) != 1:
        raise click.UsageError(
            "give exactly one of --to-earliest, --to-latest, --to-offset, --to-time or --by"
        )
    singles = [_single(text) for text in offsets if "=" in text]
    everywhere = [_offset(text) for text in offsets if "=" not in text]
    if len(everywhere) > 1 or (singles and everywhere):
        raise click.UsageError("give one --to-offset for all, or one for each partition by name")
    return OffsetTarget(
        earliest=earliest,
        latest=latest,
        offset=everywhere[0] if everywhere else None,
        singles=dict(singles),
        time_ms=time_ms,
        by=by,
    )


def _row(move: OffsetMove) -> dict[str, Any]:
    return {
        "topic": move.place.topic,
        "partition": move.place.partition,
        "start_offset": move.start,
        "old": move.old,
        "new": move.new,
        "end_offset": move.end,
        "change": move.change,
        "note": move.note,
    }


def _undo(
    group_id: str, undoing: Sequence[tuple[TopicPartition, int | None]], bootstrap: str
) -> str | None:
    """The command that restores the old offsets; None if nothing changes."""
    parts = [
        f"--to-offset {shlex.quote(f'{name.topic}:{name.partition}={back}')}"
        for name, offset in undoing
        for back in [_FORGET if offset is None else offset]
    ]
    if not parts:
        return None
    where = options.bootstrap_words(bootstrap)
    return f"ottla group reset {shlex.quote(group_id)} {' '.join(parts)} --execute{where}"


def _topic(text: str) -> tuple[str, list[int]]:
    topic, _, numbers = text.partition(":")
    parts = [part.strip() for part in numbers.split(",") if part.strip()]
    if not topic or not all(part.isdecimal() for part in parts):
        raise click.BadParameter(f"{text!r} is not TOPIC or TOPIC:0,1,2", param_hint="--topic")
    return topic, [int(part) for part in parts]


def _single(text: str) -> tuple[TopicPartition, int | None]:
    where, _, number = text.rpartition("=")
    topic, _, partition = where.rpartition(":")
    if not topic or not partition.isdecimal():
        raise click.BadParameter(
            f"{text!r} is not TOPIC:PARTITION=OFFSET", param_hint="--to-offset"
        )
    place = TopicPartition(topic, int(partition))
    return place, None if number == _FORGET else _offset(number)


def _offset(text: str) -> int:
    if not text.isdecimal():
        raise click.BadParameter(
            f"{text!r} is no offset; write a number, or TOPIC:PARTITION=NUMBER",
            param_hint="--to-offset",
        )
    return int(text)
