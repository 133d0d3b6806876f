"""`ottla group describe`: a group's members, offsets and lag."""

from typing import Any

import click

from ottla.cli import options
from ottla.cli.connect import with_admin
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


@click.command()
@click.argument("group_id", metavar="GROUP")
@options.bootstrap
@options.output
def describe(group_id: str, bootstrap: str, form: str) -> None:
    """Describe GROUP: its members, committed offsets and lag.

    \b
    ottla group describe audit
    ottla group describe audit -o json

    The lag is the number of offsets between the committed one and the end of the log; loss says
    when retention deletes the oldest of them at the present rate, and what it has deleted already
    (Ottla's brokers only). The lag of a share group counts the records from its start offset on
    that are not acknowledged.
    """  # noqa: D301
    description, rows = with_admin(bootstrap, lambda admin: _look(admin, group_id))
    is_known = description.coordinator_id >= 0
    members = [_member_row(member) for member in description.members]
    head = {
        "group": description.group_id,
        "state": description.state,
        "assignor": description.assignor or None,
        "coordinator": description.coordinator_id if is_known else None,
        "lag": total_lag(row["lag"] for row in rows),
    }
    if form == "json":
        known = members if is_known else None
        show_one("json", {**head, "members": known, "partitions": rows})
        return
    show_one(form, head)
    click.echo()
    if description.protocol_type == SHARE:
        show(form, members, _MEMBER_COLUMNS, empty="no members")
        click.echo()
        counted = [row | {"members": len(row["members"])} for row in rows]
        show(form, counted, _SHARE_COLUMNS, empty="nothing read")
        return
    unknown = "members are shown of groups of the classic protocol only"
    show(form, members, _MEMBER_COLUMNS, empty="no members" if is_known else unknown)
    click.echo()
    show(form, rows, _PARTITION_COLUMNS, empty="nothing committed")


async def _look(admin: Admin, group_id: str) -> tuple[GroupDescription, list[dict[str, Any]]]:
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
