"""`ottla topic alter`: more partitions, other settings."""

from dataclasses import dataclass

import click

from ottla.base.settings import TOPIC_SETTINGS
from ottla.cli.common import options
from ottla.cli.common.completion import topics
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show, show_one
from ottla.cli.text.settings import change_rows, show_remarks
from ottla.cli.topic.rows import topic_row
from ottla.client.admin import Admin
from ottla.client.admin.configs import ResourceKind
from ottla.client.connection.view import TopicView
from ottla.diagnosis.consequences import after_growth
from ottla.operations.settings import SettingChanges, change_settings


@click.command()
@click.argument("name", shell_complete=topics)
@click.option(
    "--partitions", "-p", type=click.IntRange(1), help="Increase the number of partitions to this."
)
@options.settings("retention.ms=7d")
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
    ottla topic alter flights --set retention.ms=1h
    ottla topic alter flights --unset retention.ms
    """  # noqa: D301
    changes = options.parse_changes(assignments, unset)
    if partitions is None and not changes:
        raise click.UsageError("nothing to change: give --partitions, --set or --unset")

    async def work(admin: Admin) -> _Altered:
        (before,) = await admin.topics.describe_all([name])
        done = SettingChanges()
        if changes:
            done = await change_settings(admin, ResourceKind.TOPIC, name, changes, TOPIC_SETTINGS)
        if partitions is not None:
            await admin.topics.grow(name, partitions)
        (after,) = await admin.topics.describe_all([name])
        return _Altered(before, after, done)

    done = with_admin(bootstrap, work)
    changed = change_rows(done.settings)
    if form == "json":
        show_one("json", {**topic_row(done.after), "changed": changed})
    elif changed:
        show(form, changed, ["setting", "old", "new"])
    show_remarks(done.settings)
    if form != "json" and partitions is not None:
        click.echo(after_growth(name, len(done.before.partitions), partitions))


@dataclass(frozen=True, slots=True)
class _Altered:
    """A topic before and after, and its changed settings."""

    before: TopicView
    after: TopicView
    settings: SettingChanges
