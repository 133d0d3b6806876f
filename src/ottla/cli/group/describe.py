"""`ottla group describe`: groups' members, offsets and lag."""

import json
from typing import Any

import click

from ottla.cli.common import options
from ottla.cli.common.completion import groups
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show, show_one
from ottla.client.admin import Admin
from ottla.client.admin.groups import GroupDescription, GroupMember
from ottla.client.admin.share_groups import SHARE
from ottla.diagnosis.groups import (
    GroupPosition,
    ShareGroupPosition,
    described_group,
    positions,
    share_positions,
    total_lag,
)

_MEMBER_COLUMNS = ["client_id", "host", "member_id", "instance_id", "partitions"]
_PARTITION_COLUMNS = ["topic", "partition", "committed", "end_offset", "lag", "loss", "client_id"]
_SHARE_COLUMNS = ["topic", "partition", "start_offset", "lag", "members"]
# A group, and a row for each of its partitions.
_Group = tuple[GroupDescription, list[dict[str, Any]]]


@click.command()
@click.argument("group_ids", nargs=-1, metavar="[GROUP]...", shell_complete=groups)
@click.option("--all", "every", is_flag=True, help="All groups.")
@options.bootstrap
@options.output
def describe(group_ids: tuple[str, ...], every: bool, bootstrap: str, form: str) -> None:
    """Describe groups: their members, committed offsets and lag.

    \b
    ottla group describe audit
    ottla group describe audit billing -o json
    ottla group describe --all

    The lag is the number of offsets between the committed one and the end of the log; loss says
    when retention deletes the oldest of them at the present rate, and what it has deleted already
    (Ottla's brokers only). The lag of a share group counts the records from its start offset on
    that are not acknowledged. With -o json one name gives an object, others a list.
    """  # noqa: D301
    if bool(group_ids) == every:
        raise click.UsageError("name groups, or say --all")

    async def work(admin: Admin) -> list[_Group]:
        ids = [entry.group_id for entry in await admin.groups.all()] if every else group_ids
        return [await _look(admin, group_id) for group_id in ids]

    found = with_admin(bootstrap, work)
    if form == "json":
        answers = [_answer(*one) for one in found]
        alone = len(group_ids) == 1
        click.echo(json.dumps(answers[0] if alone else answers, indent=2, default=str))
        return
    if not found:
        click.echo("there are no groups", err=True)
    for number, one in enumerate(found):
        if number:
            click.echo()
        _show(*one)


def _answer(description: GroupDescription, rows: list[dict[str, Any]]) -> dict[str, Any]:
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


def _show(description: GroupDescription, rows: list[dict[str, Any]]) -> None:
    head = _answer(description, rows)
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


async def _look(admin: Admin, group_id: str) -> _Group:
    description = await described_group(admin, group_id)
    if description.protocol_type == SHARE:
        shared = await share_positions(admin, description)
        return description, [_share_row(one) for one in shared]
    return description, [_row(one) for one in await positions(admin, description)]


def _member_row(member: GroupMember) -> dict[str, Any]:
    return {
        "client_id": member.client_id,
        "host": member.host,
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "partitions": [str(name) for name in member.partitions],
    }


def _row(one: GroupPosition) -> dict[str, Any]:
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
