"""`ottla topic`: create, list, describe, alter, compact and delete topics."""

from collections.abc import Collection, Iterable
from typing import Any

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import TOPIC_SETTINGS
from ottla.cli import options
from ottla.cli.compact import compact
from ottla.cli.connect import naming_nearest, with_admin
from ottla.cli.consequences import after_creation, after_growth, away_sentence, notes
from ottla.cli.moment import span_words
from ottla.cli.output import show, show_one, show_title
from ottla.cli.settings import change_settings, chosen
from ottla.cli.standing import Condition, list_where
from ottla.client import TopicPartition
from ottla.client.admin import Admin
from ottla.client.admin.configs import ConfigEntry, ResourceKind
from ottla.client.admin.topics import BROKER_DEFAULT
from ottla.client.connection.view import NO_LEADER, TopicView
from ottla.client.consumer.offsets import EARLIEST, LATEST

_PARTITION_COLUMNS = ["partition", "leader", "replicas", "isr", "start_offset", "end_offset"]
_LIST_COLUMNS = ["name", "partition_count", "replication_factor", "internal"]
_DELETE_DELAY = "file.delete.delay.ms"


@click.group()
def topic() -> None:
    """Create, list, describe, alter, compact and delete topics."""


@topic.command()
@click.argument("name")
@click.option("--partitions", "-p", type=click.IntRange(1), help="How many; else the broker's.")
@click.option("--replication-factor", "-r", type=click.IntRange(1), help="Copies of each.")
@options.settings
@click.option("--if-not-exists", is_flag=True, help="Succeed where the topic is there already.")
@options.bootstrap
@options.output
def create(
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    assignments: tuple[str, ...],
    if_not_exists: bool,
    bootstrap: str,
    form: str,
) -> None:
    """Create the topic NAME, and say what its settings mean.

    \b
    ottla topic create flights
    ottla topic create flights --partitions 6 --set retention.ms=86400000
    ottla topic create planes --set cleanup.policy=compact

    `ottla config explain NAME` tells what a setting does.
    """  # noqa: D301
    settings = options.parse_settings(assignments)

    async def work(admin: Admin) -> tuple[bool, TopicView, list[int], dict[str, ConfigEntry]]:
        made = True
        try:
            await admin.topics.create(
                name, partitions or BROKER_DEFAULT, replication_factor or BROKER_DEFAULT, settings
            )
        except OttlaError as error:
            if not (if_not_exists and error.code is ErrorCode.TOPIC_ALREADY_EXISTS):
                raise naming_nearest(error, settings, TOPIC_SETTINGS) from None
            made = False
        (view,) = await admin.topics.describe([name])
        alive = [broker.broker_id for broker in (await admin.cluster.describe()).brokers]
        return made, view, alive, await admin.configs.describe(ResourceKind.TOPIC, name)

    made, view, alive, configs = with_admin(bootstrap, work)
    away = _away([view], alive)
    if form == "json":
        told = {**_listed(view), "created": made, "replicas_down": away}
        show_one("json", {**told, "settings": chosen(configs)})
        return
    values = {entry.name: entry.value for entry in configs.values()}
    replicas = len(view.partitions[0].replicas)
    sentences = after_creation(len(view.partitions), replicas, values)
    click.echo(f"{'Created' if made else 'There is already'} {name}: {sentences}")
    if away:
        least = min(sum(b in alive for b in p.replicas) for p in view.partitions)
        click.echo(f"Note: {away_sentence(away, least, values)}", err=True)
    for note in notes(replicas, values):
        click.echo(f"Note: {note}", err=True)


@topic.command(name="list")
@click.option("--internal", is_flag=True, help="Also those that serve the cluster itself.")
@options.bootstrap
@options.output
def list_(internal: bool, bootstrap: str, form: str) -> None:
    """List all topics.

    \b
    ottla topic list
    ottla topic list --internal -o json
    """  # noqa: D301
    views = with_admin(bootstrap, lambda admin: admin.topics.all(internal=internal))
    columns = _LIST_COLUMNS if internal else _LIST_COLUMNS[:-1]
    show(form, [_listed(view) for view in views], columns, empty="there are no topics")


@topic.command()
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
    """Describe the topic NAME: its partitions, and the settings that differ from the defaults.

    \b
    ottla topic describe flights
    ottla topic describe flights -o json
    ottla topic describe --under-replicated

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


def _describe(name: str, bootstrap: str, form: str) -> None:
    async def work(
        admin: Admin,
    ) -> tuple[TopicView, list[dict[str, Any]], dict[str, ConfigEntry]]:
        (view,) = await admin.topics.describe([name])
        rows = await _partition_rows(admin, view)
        return view, rows, await admin.configs.describe(ResourceKind.TOPIC, name)

    view, rows, configs = with_admin(bootstrap, work)
    settings = chosen(configs)
    values = {entry.name: entry.value for entry in configs.values()}
    odd = notes(len(view.partitions[0].replicas), values)
    if form == "json":
        told = {**_listed(view), "partitions": rows, "settings": settings, "notes": odd}
        show_one("json", told)
        return
    known = [
        row["end_offset"] - row["start_offset"] for row in rows if row["end_offset"] is not None
    ]
    show_title(f"{view.name}  id {view.topic_id}  offsets in use {sum(known):,}")
    show(form, rows, _PARTITION_COLUMNS)
    click.echo()
    show(form, settings, ["setting", "value", "source"], empty="all settings have their defaults")
    for note in odd:
        click.echo(f"\nNote: {note}")


@topic.command()
@click.argument("name")
@click.option("--partitions", "-p", type=click.IntRange(1), help="Grow to so many.")
@options.settings
@options.unset
@options.bootstrap
@options.output
def alter(
    name: str,
    partitions: int | None,
    assignments: tuple[str, ...],
    unset: tuple[str, ...],
    bootstrap: str,
    form: str,
) -> None:
    """Change the topic NAME: more partitions, other settings.

    \b
    ottla topic alter flights --partitions 12
    ottla topic alter flights --set retention.ms=3600000
    ottla topic alter flights --unset retention.ms
    """  # noqa: D301
    changes = options.parse_changes(assignments, unset)
    if partitions is None and not changes:
        raise click.UsageError("say what to change: --partitions, --set or --unset")

    async def work(admin: Admin) -> tuple[TopicView, TopicView, list[dict[str, Any]]]:
        (before,) = await admin.topics.describe([name])
        changed: list[dict[str, Any]] = []
        if changes:
            changed = await change_settings(
                admin, ResourceKind.TOPIC, name, changes, TOPIC_SETTINGS
            )
        if partitions is not None:
            await admin.topics.grow(name, partitions)
        (after,) = await admin.topics.describe([name])
        return before, after, changed

    before, after, changed = with_admin(bootstrap, work)
    if form == "json":
        show_one("json", {**_listed(after), "changed": changed})
        return
    if changed:
        show(form, changed, ["setting", "old", "new"])
    if partitions is not None:
        click.echo(after_growth(name, len(before.partitions), partitions))


@topic.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@options.yes
@options.bootstrap
@options.output
def delete(names: tuple[str, ...], yes: bool, bootstrap: str, form: str) -> None:
    """Delete topics with all their records. This cannot be undone.

    \b
    ottla topic delete flights
    ottla topic delete flights planes --yes
    """  # noqa: D301

    async def look(admin: Admin) -> list[tuple[TopicView, int]]:
        found: list[tuple[TopicView, int]] = []
        for view in await admin.topics.describe(names):
            rows = await _partition_rows(admin, view)
            found.append(
                (view, sum((row["end_offset"] or 0) - (row["start_offset"] or 0) for row in rows))
            )
        return found

    for view, count in with_admin(bootstrap, look) if not yes else ():
        options.confirm(
            f"Delete {view.name}, {len(view.partitions)} partition(s) with {count:,} offsets in "
            "use? Its records are lost for ever."
        )

    async def work(admin: Admin) -> tuple[int, list[int]]:
        views = await admin.topics.describe(names)
        alive = await admin.cluster.brokers()
        delays_ms = [await _delete_delay_ms(admin, name) for name in names]
        await admin.topics.delete(names)
        return max(delays_ms), _away(views, alive)

    delay_ms, away = with_admin(bootstrap, work)
    if form == "json":
        show("json", [{"name": name, "deleted": True} for name in names], ["name"])
    else:
        click.echo(
            f"Deleted {', '.join(names)}. The brokers remove the files, and so free the disk, "
            f"{span_words(delay_ms)} from now (file.delete.delay.ms)."
        )
        for broker_id in away:
            click.echo(
                f"Broker {broker_id} is down and removes its replicas when it is back. Ottla keeps "
                f"the name until then, or until `ottla broker remove {broker_id}`."
            )


topic.add_command(compact)


def _away(views: Iterable[TopicView], alive: Collection[int]) -> list[int]:
    """Brokers with replicas of these topics that are down."""
    replicas = (b for view in views for entry in view.partitions for b in entry.replicas)
    return sorted(set(replicas).difference(alive))


async def _delete_delay_ms(admin: Admin, name: str) -> int:
    """How long the brokers keep the files of a topic that was deleted."""
    found = await admin.configs.describe(ResourceKind.TOPIC, name, [_DELETE_DELAY])
    return int(found[_DELETE_DELAY].value or 0)


def _listed(view: TopicView) -> dict[str, Any]:
    return {
        "name": view.name,
        "topic_id": str(view.topic_id),
        "partition_count": len(view.partitions),
        "replication_factor": max((len(entry.replicas) for entry in view.partitions), default=0),
        "internal": view.is_internal,
    }


async def _partition_rows(admin: Admin, view: TopicView) -> list[dict[str, Any]]:
    """A row per partition; offsets are None where nobody leads it."""
    led = [
        TopicPartition(view.name, entry.index)
        for entry in view.partitions
        if entry.leader != NO_LEADER
    ]
    starts = await admin.logs.offsets(dict.fromkeys(led, EARLIEST))
    ends = await admin.logs.offsets(dict.fromkeys(led, LATEST))
    rows: list[dict[str, Any]] = []
    for entry in view.partitions:
        place = TopicPartition(view.name, entry.index)
        rows.append(
            {
                "partition": entry.index,
                "leader": entry.leader if entry.leader != NO_LEADER else None,
                "leader_epoch": entry.leader_epoch,
                "replicas": list(entry.replicas),
                "isr": list(entry.isr),
                "start_offset": starts[place].offset if place in starts else None,
                "end_offset": ends[place].offset if place in ends else None,
            }
        )
    return rows
