"""`ottla group`: lists, describes, rewinds and deletes consumer groups."""

import json
import shlex
import time
from collections.abc import Sequence
from typing import Any

import click

from ottla.base.ids import TopicPartition
from ottla.cli.common import options
from ottla.cli.common.completion import groups
from ottla.cli.common.completion import topics as complete_topics
from ottla.cli.common.connect import connected, with_admin
from ottla.cli.text.output import show, show_one, show_title
from ottla.cli.text.words import moment
from ottla.client.admin import Admin
from ottla.client.admin.groups import SHARE, GroupDescription, GroupMember
from ottla.diagnosis.group_troubles import GroupSeverity, group_troubles
from ottla.diagnosis.groups import (
    GroupPosition,
    ShareGroupPosition,
    described_group,
    positions,
    share_positions,
    total_lag,
)
from ottla.operations.group_offsets import (
    OffsetMove,
    OffsetPlan,
    OffsetTarget,
    apply,
    planned,
    require_all_idle,
)


@click.group()
def group() -> None:
    """List, describe, rewind and delete consumer groups."""


@group.command()
@click.argument("group_ids", nargs=-1, required=True, metavar="GROUP...", shell_complete=groups)
@options.yes
@options.bootstrap
@options.output
def delete(group_ids: tuple[str, ...], yes: bool, bootstrap: str, form: str) -> None:
    """Delete groups without members, and their committed offsets.

    \b
    ottla group delete audit
    ottla group delete audit audit-test --yes
    """  # noqa: D301
    with_admin(bootstrap, lambda admin: require_all_idle(admin, group_ids, "delete"))
    if not yes:
        options.confirm(f"Delete {', '.join(group_ids)}, and their committed offsets?")
    with_admin(bootstrap, lambda admin: admin.groups.delete(group_ids))
    if form == "json":
        show("json", [{"group": name, "deleted": True} for name in group_ids], ["group"])
    else:
        click.echo(f"Deleted {', '.join(group_ids)}.")


_MEMBER_COLUMNS = ["client_id", "host", "member_id", "instance_id", "partitions"]
_PARTITION_COLUMNS = ["topic", "partition", "committed", "end_offset", "lag", "loss", "client_id"]
_SHARE_COLUMNS = ["topic", "partition", "start_offset", "lag", "members"]
# A group, and a table row for each of its partitions.
_Group = tuple[GroupDescription, list[dict[str, Any]]]


@group.command()
@click.argument("group_ids", nargs=-1, metavar="[GROUP]...", shell_complete=groups)
@click.option("--all", "every", is_flag=True, help="All groups.")
@connected
@options.output
async def describe(admin: Admin, group_ids: tuple[str, ...], every: bool, form: str) -> None:
    """Describe groups: their members, committed offsets and lag.

    \b
    ottla group describe audit
    ottla group describe audit billing -o json
    ottla group describe --all

    The lag is the number of offsets from the committed offset to the end of the log. The loss
    says when retention deletes the oldest unread records at the present rate, and how many it
    has deleted already (only with Ottla's brokers). The lag of a share group is the number of
    records from its start offset on that are not acknowledged. With -o json one name gives an
    object, several a list.
    """  # noqa: D301
    if bool(group_ids) == every:
        raise click.UsageError("name groups, or say --all")

    ids = [entry.group_id for entry in await admin.groups.all()] if every else group_ids
    found = [await _described(admin, group_id) for group_id in ids]
    if form == "json":
        answers = [_group_answer(*one) for one in found]
        alone = len(group_ids) == 1
        click.echo(json.dumps(answers[0] if alone else answers, indent=2, default=str))
        return
    if not found:
        click.echo("there are no groups", err=True)
    for number, one in enumerate(found):
        if number:
            click.echo()
        _show_group(*one)


def _group_answer(description: GroupDescription, rows: list[dict[str, Any]]) -> dict[str, Any]:
    is_known = description.coordinator_id >= 0
    members = [_member_row(member) for member in description.members]
    return {
        "group": description.group_id,
        "state": description.state,
        "assignor": description.assignor or None,
        "coordinator": description.coordinator_id if is_known else None,
        "lag": total_lag(row["lag"] for row in rows),
        "members": members if is_known else None,
        "partitions": rows,
    }


def _show_group(description: GroupDescription, rows: list[dict[str, Any]]) -> None:
    head = _group_answer(description, rows)
    members = head.pop("members")
    del head["partitions"]
    show_one("table", head)
    click.echo()
    unknown = "members are shown of groups of the classic protocol only"
    none = unknown if members is None else "no members"
    show("table", members or [], _MEMBER_COLUMNS, empty=none)
    click.echo()
    if description.protocol_type == SHARE:
        counted = [row | {"members": len(row["members"])} for row in rows]
        show("table", counted, _SHARE_COLUMNS, empty="nothing read")
    else:
        show("table", rows, _PARTITION_COLUMNS, empty="nothing committed")
        for row in rows:
            if row["beyond_end"]:
                click.echo(f"\n{_beyond_end(row)}")


def _beyond_end(row: dict[str, Any]) -> str:
    return (
        f"{row['topic']}-{row['partition']}: the committed offset {row['committed']} is"
        f" {row['beyond_end']} beyond the end {row['end_offset']}. A consumer there goes on where"
        " its auto.offset.reset says; `ottla group reset` sets it to an offset of the log."
    )


async def _described(admin: Admin, group_id: str) -> _Group:
    description = await described_group(admin, group_id)
    if description.protocol_type == SHARE:
        shared = await share_positions(admin, description)
        return description, [_share_row(one) for one in shared]
    return description, [_position_row(one) for one in await positions(admin, description)]


def _member_row(member: GroupMember) -> dict[str, Any]:
    return {
        "client_id": member.client_id,
        "host": member.host,
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "partitions": [str(name) for name in member.partitions],
    }


def _position_row(one: GroupPosition) -> dict[str, Any]:
    loss = one.loss
    return {
        "topic": one.name.topic,
        "partition": one.name.partition,
        "committed": one.committed,
        "end_offset": one.end_offset,
        "lag": one.lag,
        "beyond_end": one.beyond_end,
        "log_start": None if loss is None else loss.log_start_offset,
        "deleted_unread": None if loss is None else loss.deleted_unread,
        "time_left_ms": None if loss is None else loss.time_left_ms,
        "loss": None if loss is None else loss.words,
        "client_id": one.owner.client_id if one.owner else None,
        "member_id": one.owner.member_id if one.owner else None,
    }


def _share_row(one: ShareGroupPosition) -> dict[str, Any]:
    return {
        "topic": one.name.topic,
        "partition": one.name.partition,
        "start_offset": one.start_offset,
        "lag": one.lag,
        "members": list(one.members),
    }


@group.command(name="why")
@click.argument("group_id", metavar="GROUP", shell_complete=groups)
@connected
@options.output
async def why_(admin: Admin, group_id: str, form: str) -> None:
    """Show what is wrong with GROUP, the worst first, and what helps.

    \b
    ottla group why audit
    ottla group why audit -o json

    Works for the members of any client: lost and endangered records, members that are stuck or
    fail, transactions that hide records, missing rights, partitions without a leader, rebalances.
    """  # noqa: D301
    found = await group_troubles(admin, group_id, round(time.time() * 1000))
    if form == "json":
        show_one(
            "json",
            {
                "group": group_id,
                "state": found.group.state,
                "members": [_member_row(member) for member in found.group.members],
                "lag": found.lag,
                "partitions": [_position_row(one) for one in found.positions],
                "troubles": [
                    {"severity": one.severity.name, "what": one.what, "remedy": one.remedy}
                    for one in found.troubles
                ],
            },
        )
        return
    show_title(
        f"{group_id}  {found.group.state}  members {len(found.group.members)}  lag "
        f"{'unknown' if found.lag is None else found.lag}"
    )
    for one in found.troubles:
        click.secho(one.what, fg="red" if one.severity is not GroupSeverity.NOTE else None)
        click.echo(f"  do  {one.remedy}")
    if not found.troubles:
        click.echo("nothing is wrong as far as the brokers know")


@group.command(name="list")
@click.option("--state", "states", multiple=True, help="Only groups in this state, such as Empty.")
@connected
@options.output
async def list_(admin: Admin, states: tuple[str, ...], form: str) -> None:
    """List the groups.

    \b
    ottla group list
    ottla group list --state Stable -o json
    """  # noqa: D301
    found = await admin.groups.all(states)
    rows = [
        {
            "group": entry.group_id,
            "state": entry.state,
            "protocol": entry.protocol_type,
            "type": entry.kind,
        }
        for entry in found
    ]
    show(form, rows, ["group", "state", "protocol", "type"], empty="there are no groups")


_MOVE_COLUMNS = ["topic", "partition", "start_offset", "old", "new", "end_offset", "change", "note"]
_FORGET = "none"


@group.command()
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
    """Move where GROUP resumes. Shows the changes; --execute makes them.

    \b
    ottla group reset audit --to-earliest
    ottla group reset audit --to-time 'yesterday 09:00' --topic flights --execute
    ottla group reset audit --by -100 --topic flights:0,2
    ottla group reset audit --to-offset flights:0=1234 --execute
    ottla group reset workers --to-latest --execute

    The group must have no members. The command that undoes the change is printed. For a share group
    the start offset is moved: acknowledged records from there on are delivered again.
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
    rows = [_move_row(move) for move in plan.moves]
    undo = _undoing_command(group_id, plan.undoing, bootstrap)
    if form == "json":
        show_one("json", {"group": group_id, "executed": execute, "partitions": rows, "undo": undo})
        return
    show(form, rows, _MOVE_COLUMNS, empty="its topics are gone")
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


def _move_row(move: OffsetMove) -> dict[str, Any]:
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


def _undoing_command(
    group_id: str, undoing: Sequence[tuple[TopicPartition, int | None]], bootstrap: str
) -> str | None:
    """Return the command that restores the old offsets; None if nothing changes."""
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
