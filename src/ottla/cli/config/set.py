"""`ottla config set`: changes settings, and shows old and new values."""

import click

from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.cli.config.resources import (
    KINDS,
    TABLES,
    kind_argument,
    name_argument,
    require,
    resource,
)
from ottla.cli.text.output import show
from ottla.cli.text.settings import change_rows, show_remarks
from ottla.client.admin import Admin
from ottla.operations.settings import SettingChanges, change_settings


@click.command(name="set")
@kind_argument
@name_argument
@click.argument("assignments", nargs=-1, metavar="[SETTING=VALUE]...")
@options.unset
@options.bootstrap
@options.output
def set_(
    kind: str,
    name: str,
    assignments: tuple[str, ...],
    unset: tuple[str, ...],
    bootstrap: str,
    form: str,
) -> None:
    """Change settings of a topic, a broker or a group, at once.

    \b
    ottla config set topic flights retention.ms=1h
    ottla config set topic flights --unset retention.ms
    ottla config set broker all log.retention.ms=1h

    A broker is named by its id; `all` stands for all brokers. A secret is read from a file:
    ssl.keystore.password=@FILE. Shows old and new values.
    """  # noqa: D301
    changes = options.parse_changes(assignments, unset)
    if not changes:
        raise click.UsageError("nothing to change: give SETTING=VALUE or --unset SETTING")

    async def work(admin: Admin) -> SettingChanges:
        await require(admin, kind, name)
        return await change_settings(
            admin, KINDS[kind], resource(kind, name), changes, TABLES[kind]
        )

    done = with_admin(bootstrap, work)
    show(form, change_rows(done), ["setting", "old", "new"])
    show_remarks(done)
