"""`ottla topic describe`: one topic with its settings, or partitions in some trouble."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from ottla.cli import options
from ottla.cli.connect import with_admin
from ottla.cli.text.output import show, show_one, show_title
from ottla.cli.text.settings import changed_rows
from ottla.cli.topic.rows import topic_row
from ottla.cli.topic.standing import Condition, list_where
from ottla.client.admin import Admin
from ottla.client.admin.configs import ConfigEntry, ResourceKind
from ottla.client.connection.view import TopicView
from ottla.diagnosis.consequences import notes
from ottla.diagnosis.partitions import PartitionOffsets, offsets_of

_COLUMNS = ["partition", "leader", "replicas", "isr", "start_offset", "end_offset"]


@click.command()
@click.argument("name", required=False)
@click.option("--under-replicated", is_flag=True, help="Only partitions with a replica behind.")
@click.option("--unavailable", is_flag=True, help="Only partitions without a leader.")
@click.option("--under-min-isr", is_flag=True, help="Only partitions that refuse acks=all.")
@options.bootstrap
@options.output
def describe(
    name: str | None,
    under_replicated: bool,
    unavailable: bool,
    under_min_isr: bool,
    bootstrap: str,
    form: str,
) -> None:
    """Describe the topic NAME: its partitions and settings.

    \b
    ottla topic describe flights
    ottla topic describe flights -o json
    ottla topic describe --under-replicated

    Settings are shown that were set, rather than left at their defaults.
    With one of the conditions only the partitions that meet it, of NAME or of all topics.
    """  # noqa: D301
    asked = (
        (under_replicated, lambda one: one.is_under_replicated),
        (unavailable, lambda one: one.is_offline),
        (under_min_isr, lambda one: one.is_under_min_isr),
    )
    conditions: list[Condition] = [condition for is_asked, condition in asked if is_asked]
    if conditions:
        list_where(conditions, name, bootstrap, form)
        return
    if name is None:
        raise click.UsageError("name a topic, or a condition such as --under-replicated")
    _describe(name, bootstrap, form)


@dataclass(frozen=True, slots=True)
class _Topic:
    """What the brokers say of a topic."""

    view: TopicView
    partitions: list[PartitionOffsets]
    configs: Mapping[str, ConfigEntry]


def _describe(name: str, bootstrap: str, form: str) -> None:
    async def work(admin: Admin) -> _Topic:
        (view,) = await admin.topics.describe([name])
        partitions = await offsets_of(admin, view)
        return _Topic(view, partitions, await admin.configs.describe(ResourceKind.TOPIC, name))

    found = with_admin(bootstrap, work)
    rows = [_row(one) for one in found.partitions]
    settings = changed_rows(found.configs)
    values = {entry.name: entry.value for entry in found.configs.values()}
    odd = notes(len(found.view.partitions[0].replicas), values)
    if form == "json":
        answer = {**topic_row(found.view), "partitions": rows, "settings": settings, "notes": odd}
        show_one("json", answer)
        return
    in_use = sum(one.offset_count for one in found.partitions)
    show_title(f"{found.view.name}  id {found.view.topic_id}  offsets in use {in_use:,}")
    show(form, rows, _COLUMNS)
    click.echo()
    show(form, settings, ["setting", "value", "source"], empty="all settings have their defaults")
    for note in odd:
        click.echo(f"\nNote: {note}")


def _row(one: PartitionOffsets) -> dict[str, Any]:
    return {
        "partition": one.view.index,
        "leader": one.leader,
        "leader_epoch": one.view.leader_epoch,
        "replicas": list(one.view.replicas),
        "isr": list(one.view.isr),
        "start_offset": one.start_offset,
        "end_offset": one.end_offset,
    }
