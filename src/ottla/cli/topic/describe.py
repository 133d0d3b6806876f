"""`ottla topic describe`: topics with their settings, or partitions in trouble."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from ottla.base.settings.written_values import with_unit
from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show, show_title
from ottla.cli.text.settings import changed_rows
from ottla.cli.text.topics import matching, regex
from ottla.cli.topic.condition_list import Condition, list_where
from ottla.cli.topic.rows import topic_row
from ottla.client.admin import Admin
from ottla.client.admin.configs import ConfigEntry, ResourceKind
from ottla.client.connection.cluster import connections_of
from ottla.client.connection.view import TopicView
from ottla.diagnosis.consequences import notes
from ottla.diagnosis.partitions import PartitionOffsets, offsets_of

_COLUMNS = ["partition", "leader", "replicas", "isr", "start_offset", "end_offset"]


@click.command()
@click.argument("words", nargs=-1, metavar="[NAME]...", shell_complete=topics)
@regex
@click.option("--under-replicated", is_flag=True, help="Only partitions with a replica behind.")
@click.option("--unavailable", is_flag=True, help="Only partitions without a leader.")
@click.option("--under-min-isr", is_flag=True, help="Only partitions that refuse acks=all.")
@options.bootstrap
@options.output
def describe(
    words: tuple[str, ...],
    regex: bool,
    under_replicated: bool,
    unavailable: bool,
    under_min_isr: bool,
    bootstrap: str,
    form: str,
) -> None:
    """Describe topics: their partitions and settings.

    \b
    ottla topic describe flights
    ottla topic describe flights planes -o json
    ottla topic describe --regex 'flights-.*'
    ottla topic describe --under-replicated

    Settings are shown that were set, rather than left at their defaults; with -o json in the
    numbers that the brokers have. One name gives an object, others a list.
    With one of the conditions only the partitions that meet it, of the names or of all topics.
    """  # noqa: D301
    asked = (
        (under_replicated, lambda one: one.is_under_replicated),
        (unavailable, lambda one: one.is_offline),
        (under_min_isr, lambda one: one.is_under_min_isr),
    )
    conditions: list[Condition] = [condition for is_asked, condition in asked if is_asked]
    if conditions:
        list_where(conditions, words, regex, bootstrap, form)
        return
    if not words:
        raise click.UsageError("name a topic, or a condition such as --under-replicated")
    found = _look(words, regex, bootstrap)
    if form == "json":
        answers = [_answer(one) for one in found]
        alone = len(words) == 1 and not regex
        click.echo(json.dumps(answers[0] if alone else answers, indent=2, default=str))
        return
    for number, one in enumerate(found):
        if number:
            click.echo()
        _show(one)


@dataclass(frozen=True, slots=True)
class _Topic:
    """The brokers' description of a topic."""

    view: TopicView
    partitions: list[PartitionOffsets]
    configs: Mapping[str, ConfigEntry]

    @property
    def notes(self) -> list[str]:
        """The contradictions of its settings."""
        values = {entry.name: entry.value for entry in self.configs.values()}
        return notes(len(self.view.partitions[0].replicas), values)


def _look(words: Sequence[str], regex: bool, bootstrap: str) -> list[_Topic]:
    async def work(admin: Admin) -> list[_Topic]:
        names = await matching(connections_of(admin), words, regex=regex)
        return [
            _Topic(
                view,
                await offsets_of(admin, view),
                await admin.configs.describe(ResourceKind.TOPIC, view.name),
            )
            for view in await admin.topics.describe_all(names)
        ]

    return with_admin(bootstrap, work)


def _answer(found: _Topic) -> dict[str, Any]:
    return {
        **topic_row(found.view),
        "partitions": [_row(one) for one in found.partitions],
        "settings": changed_rows(found.configs),
        "notes": found.notes,
    }


def _show(found: _Topic) -> None:
    in_use = sum(one.offset_count for one in found.partitions)
    show_title(f"{found.view.name}  id {found.view.topic_id}  offsets in use {in_use:,}")
    show("table", [_row(one) for one in found.partitions], _COLUMNS)
    click.echo()
    settings = [
        row | {"value": row["value"] and with_unit(row["setting"], row["value"])}
        for row in changed_rows(found.configs)
    ]
    columns = ["setting", "value", "source"]
    show("table", settings, columns, empty="all settings have their defaults")
    for note in found.notes:
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
