"""`ottla topic`: creates, alters, deletes, lists and describes topics."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from ottla.base.quantities import span_words
from ottla.base.settings import TOPIC_SETTINGS
from ottla.base.settings.written_values import with_unit
from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.common.connect import connected, with_admin
from ottla.cli.text.output import show, show_one, show_title
from ottla.cli.text.places import matching, regex
from ottla.cli.text.settings import change_rows, changed_rows, show_notes, show_remarks
from ottla.client.admin import Admin
from ottla.client.admin.configs import ConfigEntry, ConfigResourceType
from ottla.client.admin.partitions import PartitionStatus
from ottla.client.connection.cluster import connections_of
from ottla.client.connection.view import TopicDescription
from ottla.diagnosis.consequences import after_creation, after_growth, notes
from ottla.diagnosis.partitions import PartitionOffsets, offsets_of
from ottla.operations.settings import SettingChanges, change_settings
from ottla.operations.topics import create_topic, delete_topics


@click.command()
@click.argument("name")
@click.option("--partitions", "-p", type=click.IntRange(1), help="How many; else the broker's.")
@click.option("--replication-factor", "-r", type=click.IntRange(1), help="Copies of each.")
@options.settings("retention.ms=7d")
@click.option("--if-not-exists", is_flag=True, help="Succeed where the topic is there already.")
@connected
@options.output
async def create(
    admin: Admin,
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    assignments: tuple[str, ...],
    if_not_exists: bool,
    form: str,
) -> None:
    """Create the topic NAME, and show what its settings mean.

    \b
    ottla topic create flights
    ottla topic create flights --partitions 6 --set retention.ms=1d
    ottla topic create planes --set cleanup.policy=compact

    `ottla config explain NAME` says what a setting does.
    """  # noqa: D301
    settings = options.parse_settings(assignments)

    done = await create_topic(
        admin, name, partitions, replication_factor, settings, if_not_exists=if_not_exists
    )
    if form == "json":
        answer = {
            **topic_row(done.view),
            "created": done.is_new,
            "replicas_down": list(done.brokers_down),
            "settings": changed_rows(done.configs),
        }
        show_one("json", answer)
        return
    sentences = after_creation(len(done.view.partitions), done.replication_factor, done.values)
    click.echo(f"{'Created' if done.is_new else 'There is already'} {name}: {sentences}")
    show_notes(done.notes)


@click.command()
@click.argument("name", shell_complete=topics)
@click.option(
    "--partitions", "-p", type=click.IntRange(1), help="Increase the number of partitions to this."
)
@options.settings("retention.ms=7d")
@options.unset
@connected
@options.output
async def alter(
    admin: Admin,
    name: str,
    partitions: int | None,
    assignments: tuple[str, ...],
    unset: tuple[str, ...],
    form: str,
) -> None:
    """Change the topic NAME: more partitions, other settings.

    \b
    ottla topic alter flights --partitions 12
    ottla topic alter flights --set retention.ms=1h
    ottla topic alter flights --unset retention.ms
    """  # noqa: D301
    changes = options.parse_changes(assignments, unset)
    if partitions is None and not changes:
        raise click.UsageError("nothing to change: give --partitions, --set or --unset")

    before = await admin.topics.describe(name)
    done = SettingChanges()
    if changes:
        done = await change_settings(admin, ConfigResourceType.TOPIC, name, changes, TOPIC_SETTINGS)
    if partitions is not None:
        await admin.topics.create_partitions(name, partitions)
    after = await admin.topics.describe(name)
    changed = change_rows(done)
    if form == "json":
        show_one("json", {**topic_row(after), "changed": changed})
    elif changed:
        show(form, changed, ["setting", "old", "new"])
    show_remarks(done)
    if form != "json" and partitions is not None:
        click.echo(after_growth(name, len(before.partitions), partitions))


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=topics)
@options.yes
@options.bootstrap
@options.output
def delete(names: tuple[str, ...], yes: bool, bootstrap: str, form: str) -> None:
    """Delete topics with all their records.

    \b
    ottla topic delete flights
    ottla topic delete flights planes --yes

    Ottla's brokers keep the records for an hour (delete.topic.trash.ms); until then, `ottla undo`
    brings the topic back.
    """  # noqa: D301

    async def look(admin: Admin) -> list[tuple[TopicDescription, int]]:
        views = await admin.topics.describe_all(names)
        return [
            (view, sum(one.offset_count for one in await offsets_of(admin, view))) for view in views
        ]

    for view, count in with_admin(bootstrap, look) if not yes else ():
        options.confirm(
            f"Delete {view.name}, {len(view.partitions)} partition(s) with {count:,} offsets in "
            "use?"
        )
    done = with_admin(bootstrap, lambda admin: delete_topics(admin, names))
    if form == "json":
        show("json", [{"name": name, "deleted": True} for name in names], ["name"])
        return
    kept_ms, setting = done.delay_ms, "file.delete.delay.ms"
    if done.trash_ms:
        kept_ms, setting = done.trash_ms, "delete.topic.trash.ms; until then `ottla undo` restores"
    click.echo(
        f"Deleted {', '.join(names)}. The brokers remove the files, and so free the disk, "
        f"{span_words(kept_ms)} from now ({setting}), or at once where it is full."
    )
    for broker_id in done.brokers_down:
        click.echo(
            f"Broker {broker_id} is down and removes its replicas when it is back. Ottla keeps "
            f"the name until then, or until `ottla broker remove {broker_id}`."
        )


_TOPIC_COLUMNS = ["name", "partition_count", "replication_factor", "internal"]


@click.command(name="list")
@click.option("--internal", is_flag=True, help="Also those that serve the cluster itself.")
@connected
@options.output
async def list_(admin: Admin, internal: bool, form: str) -> None:
    """List all topics.

    \b
    ottla topic list
    ottla topic list --internal -o json
    """  # noqa: D301
    views = await admin.topics.all(internal=internal)
    columns = _TOPIC_COLUMNS if internal else _TOPIC_COLUMNS[:-1]
    show(form, [topic_row(view) for view in views], columns, empty="there are no topics")


_PARTITION_COLUMNS = ["partition", "leader", "replicas", "isr", "start_offset", "end_offset"]


@click.command()
@click.argument("words", nargs=-1, metavar="[NAME]...", shell_complete=topics)
@regex
@click.option("--under-replicated", is_flag=True, help="Only partitions with a replica behind.")
@click.option("--unavailable", is_flag=True, help="Only partitions without a leader.")
@click.option("--under-min-isr", is_flag=True, help="Only partitions that refuse acks=all.")
@connected
@options.output
async def describe(
    admin: Admin,
    words: tuple[str, ...],
    regex: bool,
    under_replicated: bool,
    unavailable: bool,
    under_min_isr: bool,
    form: str,
) -> None:
    """Describe topics: their partitions and settings.

    \b
    ottla topic describe flights
    ottla topic describe flights planes -o json
    ottla topic describe --regex 'flights-.*'
    ottla topic describe --under-replicated

    Shows the settings that are not at their defaults; with -o json in the brokers' units. With -o
    json one name gives an object, several a list. With a condition such as --unavailable, it shows
    only the partitions that meet it, of the named topics or of all.
    """  # noqa: D301
    asked = (
        (under_replicated, lambda one: one.is_under_replicated),
        (unavailable, lambda one: one.is_offline),
        (under_min_isr, lambda one: one.is_under_min_isr),
    )
    conditions: list[Condition] = [condition for is_asked, condition in asked if is_asked]
    if not conditions and not words:
        raise click.UsageError("name a topic, or a condition such as --under-replicated")
    names = await matching(connections_of(admin), words, regex=regex)
    if conditions:
        rows = [
            standing_row(one)
            for one in await admin.partitions.describe(names or None)
            if any(condition(one) for condition in conditions)
        ]
        show(form, rows, _STANDING_COLUMNS, empty="there is no such partition")
        return
    found = [
        _Topic(
            view,
            await offsets_of(admin, view),
            await admin.configs.describe(ConfigResourceType.TOPIC, view.name),
        )
        for view in await admin.topics.describe_all(names)
    ]
    if form == "json":
        answers = [_topic_answer(one) for one in found]
        alone = len(words) == 1 and not regex
        click.echo(json.dumps(answers[0] if alone else answers, indent=2, default=str))
        return
    for number, one in enumerate(found):
        if number:
            click.echo()
        _show_topic(one)


@dataclass(frozen=True, slots=True)
class _Topic:
    """A topic as the brokers describe it."""

    view: TopicDescription
    partitions: list[PartitionOffsets]
    configs: Mapping[str, ConfigEntry]

    @property
    def notes(self) -> list[str]:
        """Return the contradictions between its settings."""
        values = {entry.name: entry.value for entry in self.configs.values()}
        return notes(len(self.view.partitions[0].replicas), values)


def _topic_answer(found: _Topic) -> dict[str, Any]:
    return {
        **topic_row(found.view),
        "partitions": [_partition_row(one) for one in found.partitions],
        "settings": changed_rows(found.configs),
        "notes": found.notes,
    }


def _show_topic(found: _Topic) -> None:
    in_use = sum(one.offset_count for one in found.partitions)
    show_title(f"{found.view.name}  id {found.view.topic_id}  offsets in use {in_use:,}")
    show("table", [_partition_row(one) for one in found.partitions], _PARTITION_COLUMNS)
    click.echo()
    settings = [
        row | {"value": row["value"] and with_unit(row["setting"], row["value"])}
        for row in changed_rows(found.configs)
    ]
    columns = ["setting", "value", "source"]
    show("table", settings, columns, empty="all settings have their defaults")
    for note in found.notes:
        click.echo(f"\nNote: {note}")


def _partition_row(one: PartitionOffsets) -> dict[str, Any]:
    return {
        "partition": one.view.partition,
        "leader": one.leader,
        "leader_epoch": one.view.leader_epoch,
        "replicas": list(one.view.replicas),
        "isr": list(one.view.isr),
        "start_offset": one.start_offset,
        "end_offset": one.end_offset,
    }


Condition = Callable[[PartitionStatus], bool]

_STANDING_COLUMNS = ["partition", "leader", "replicas", "isr", "elr", "min_isr"]


def standing_row(one: PartitionStatus) -> dict[str, Any]:
    """Return the state of one partition, for a table or JSON."""
    return {
        "partition": str(one.name),
        "leader": None if one.is_offline else one.leader,
        "leader_epoch": one.leader_epoch,
        "replicas": list(one.replicas),
        "isr": list(one.isr),
        "elr": list(one.elr),
        "min_isr": one.min_isr,
    }


def topic_row(view: TopicDescription) -> dict[str, Any]:
    """Return the topic's name, id, and numbers of partitions and replicas."""
    return {
        "name": view.name,
        "topic_id": str(view.topic_id),
        "partition_count": len(view.partitions),
        "replication_factor": max((len(entry.replicas) for entry in view.partitions), default=0),
        "internal": view.is_internal,
    }
