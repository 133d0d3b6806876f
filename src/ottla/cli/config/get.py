"""`ottla config get`: settings, and the sources of their values."""

import click

from ottla.base.settings.tables import unknown_name
from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.cli.config.resources import KINDS, kind_argument, name_argument, require, resource
from ottla.cli.text.output import show
from ottla.cli.text.settings import changed_rows, setting_row
from ottla.client.admin import Admin
from ottla.client.admin.configs import ConfigEntry


@click.command()
@kind_argument
@name_argument
@click.argument("settings", nargs=-1, metavar="[SETTING]...")
@click.option("--changed", is_flag=True, help="Only what was set, not defaults.")
@options.bootstrap
@options.output
def get(
    kind: str, name: str, settings: tuple[str, ...], changed: bool, bootstrap: str, form: str
) -> None:
    """Show settings of a topic, a broker or a group. Sources are shown, too.

    \b
    ottla config get topic flights
    ottla config get topic flights retention.ms cleanup.policy
    ottla config get broker 0 --changed
    ottla config get broker all                    what is set for all brokers
    """  # noqa: D301
    found = with_admin(bootstrap, lambda admin: _settings(admin, kind, name, settings))
    for wanted in settings:
        if wanted not in found:
            raise unknown_name(wanted, found, kind)
    rows = changed_rows(found) if changed else [setting_row(found[key]) for key in sorted(found)]
    show(form, rows, ["setting", "value", "source"], empty="nothing is set")


async def _settings(
    admin: Admin, kind: str, name: str, settings: tuple[str, ...]
) -> dict[str, ConfigEntry]:
    await require(admin, kind, name)
    found = await admin.configs.describe(KINDS[kind], resource(kind, name))
    if settings and all(wanted in found for wanted in settings):
        return {wanted: found[wanted] for wanted in settings}
    return found
