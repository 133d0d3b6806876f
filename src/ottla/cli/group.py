"""`ottla group`: list, describe, rewind and delete consumer groups."""

from typing import Any

import click

from ottla.base.ids import TopicPartition
from ottla.cli import options
from ottla.cli.connect import with_admin
from ottla.cli.group_reset import reset
from ottla.cli.idle import described_group, require_idle
from ottla.cli.loss import NOTHING_KNOWN, times_left
from ottla.cli.output import show, show_one
from ottla.cli.span import known_offsets
from ottla.client.admin import Admin
from ottla.client.admin.groups import GroupDescription
from ottla.client.admin.share_groups import SHARE
from ottla.client.consumer.offsets import LATEST

_MEMBER_COLUMNS = ["client_id", "host", "member_id", "instance_id", "partitions"]
_PARTITION_COLUMNS = ["topic", "partition", "committed", "end_offset", "lag", "loss", "client_id"]
_SHARE_COLUMNS = ["topic", "partition", "start_offset", "lag", "members"]


@click.group()
def group() -> None:
    """List, describe, rewind and delete consumer groups."""


group.add_command(reset)


@group.command(name="list")
@click.option("--state", "states", multiple=True, help="Only groups in this state, such as Empty.")
@options.bootstrap
@options.output
def list_(states: tuple[str, ...], bootstrap: str, form: str) -> None:
    """List the groups.

    \b
    ottla group list
    ottla group list --state Stable -o json
    """  # noqa: D301
    found = with_admin(bootstrap, lambda admin: admin.groups.all(states))
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


@group.command()
@click.argument("group_id", metavar="GROUP")
@options.bootstrap
@options.output
def describe(group_id: str, bootstrap: str, form: str) -> None:
    """Describe GROUP: its members, and where it stands in each partition.

    \b
    ottla group describe audit
    ottla group describe audit -o json

    The lag is the number of offsets between the committed one and the end of the log; loss tells
    when retention deletes the oldest of them at the present rate, and what it has deleted already
    (Ottla's brokers only). Of a share group, the lag is what lies behind its start and is not done
    with.
    """  # noqa: D301
    description, rows = with_admin(bootstrap, lambda admin: _described(admin, group_id))
    is_known = description.coordinator_id >= 0
    members = [
        {
            "client_id": member.client_id,
            "host": member.host,
            "member_id": member.member_id,
            "instance_id": member.instance_id,
            "partitions": [str(place) for place in member.partitions],
        }
        for member in description.members
    ]
    lags = [row["lag"] for row in rows if row["lag"] is not None]
    head = {
        "group": description.group_id,
        "state": description.state,
        "assignor": description.assignor or None,
        "coordinator": description.coordinator_id if is_known else None,
        "lag": sum(lags) if lags else None,
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


@group.command()
@click.argument("group_ids", nargs=-1, required=True, metavar="GROUP...")
@options.yes
@options.bootstrap
@options.output
def delete(group_ids: tuple[str, ...], yes: bool, bootstrap: str, form: str) -> None:
    """Delete groups that have no members, with the offsets they have committed.

    \b
    ottla group delete audit
    ottla group delete audit audit-test --yes
    """  # noqa: D301

    async def look(admin: Admin) -> None:
        for group_id in group_ids:
            require_idle(await described_group(admin, group_id), "delete")

    with_admin(bootstrap, look)
    if not yes:
        options.confirm(f"Delete {', '.join(group_ids)}, and forget where they stand?")
    with_admin(bootstrap, lambda admin: admin.groups.delete(group_ids))
    if form == "json":
        show("json", [{"group": name, "deleted": True} for name in group_ids], ["group"])
    else:
        click.echo(f"Deleted {', '.join(group_ids)}.")


async def _described(admin: Admin, group_id: str) -> tuple[GroupDescription, list[dict[str, Any]]]:
    description = await described_group(admin, group_id)
    if description.protocol_type == SHARE:
        return description, await _shared(admin, description)
    committed = await admin.groups.offsets(group_id)
    owners = {place: member for member in description.members for place in member.partitions}
    places = sorted({*committed, *owners})
    ends = await known_offsets(admin, places, LATEST)
    left = await times_left(admin, group_id, {p: committed[p].offset for p in committed})
    rows: list[dict[str, Any]] = []
    for place in places:
        offset = committed[place].offset if place in committed else None
        end = ends.get(place)
        owner = owners.get(place)
        rows.append(
            {
                "topic": place.topic,
                "partition": place.partition,
                "committed": offset,
                "end_offset": end,
                "lag": None if offset is None or end is None else max(0, end - offset),
                **left.get(place, NOTHING_KNOWN),
                "client_id": owner.client_id if owner else None,
                "member_id": owner.member_id if owner else None,
            }
        )
    return description, rows


async def _shared(admin: Admin, description: GroupDescription) -> list[dict[str, Any]]:
    """A row for each partition that a share group reads, with all who look after it."""
    positions = await admin.share_groups.positions(description.group_id)
    members: dict[TopicPartition, list[str]] = {}
    for member in description.members:
        for place in member.partitions:
            members.setdefault(place, []).append(member.member_id)
    return [
        {
            "topic": place.topic,
            "partition": place.partition,
            "start_offset": positions[place].start_offset if place in positions else None,
            "lag": positions[place].lag if place in positions else None,
            "members": members.get(place, []),
        }
        for place in sorted({*positions, *members})
    ]
