"""`ottla config`: show, change and explain settings of topics, brokers and groups."""

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS
from ottla.base.settings.setting import Setting
from ottla.base.settings.tables import unknown_name
from ottla.cli import options
from ottla.cli.connect import with_admin
from ottla.cli.explain import explain
from ottla.cli.output import show
from ottla.cli.settings import change_settings, chosen, setting_row
from ottla.client.admin import Admin
from ottla.client.admin.configs import ConfigEntry, ResourceKind

_KINDS = {
    "topic": ResourceKind.TOPIC,
    "broker": ResourceKind.BROKER,
    "group": ResourceKind.GROUP,
}
_TABLES: dict[str, dict[str, Setting]] = {
    "topic": TOPIC_SETTINGS,
    "broker": BROKER_SETTINGS,
    "group": GROUP_SETTINGS,
}
# What people write for the settings that hold for every broker; the protocol's word is "".
_ALL = "all"

_kind = click.argument("kind", type=click.Choice(list(_KINDS)))
_name = click.argument("name")


@click.group()
def config() -> None:
    """Show, change and explain settings.

    \b
    ottla config get topic flights
    ottla config set broker all log.retention.ms=3600000
    ottla config explain log.flush.policy
    """  # noqa: D301


config.add_command(explain)


@config.command()
@_kind
@_name
@click.argument("settings", nargs=-1, metavar="[SETTING]...")
@click.option("--changed", is_flag=True, help="Only what somebody has set.")
@options.bootstrap
@options.output
def get(
    kind: str, name: str, settings: tuple[str, ...], changed: bool, bootstrap: str, form: str
) -> None:
    """Show the settings of a topic, a broker (by its id) or a group, and where they come from.

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
    rows = chosen(found) if changed else [setting_row(found[key]) for key in sorted(found)]
    show(form, rows, ["setting", "value", "source"], empty="nothing is set")


@config.command(name="set")
@_kind
@_name
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
    """Change settings of a topic, a broker (by its id; `all` for all brokers) or a group, at once.

    \b
    ottla config set topic flights retention.ms=3600000
    ottla config set topic flights --unset retention.ms
    ottla config set broker all log.retention.ms=3600000

    Shows old and new values.
    """  # noqa: D301
    changes = options.parse_changes(assignments, unset)
    if not changes:
        raise click.UsageError("say what to change: SETTING=VALUE or --unset SETTING")

    async def work(admin: Admin) -> list[dict[str, object]]:
        await _require(admin, kind, name)
        return await change_settings(
            admin, _KINDS[kind], _resource(kind, name), changes, _TABLES[kind]
        )

    show(form, with_admin(bootstrap, work), ["setting", "old", "new"])


async def _settings(
    admin: Admin, kind: str, name: str, settings: tuple[str, ...]
) -> dict[str, ConfigEntry]:
    await _require(admin, kind, name)
    found = await admin.configs.describe(_KINDS[kind], _resource(kind, name))
    if settings and all(wanted in found for wanted in settings):
        return {wanted: found[wanted] for wanted in settings}
    return found


async def _require(admin: Admin, kind: str, name: str) -> None:
    """Raise where the topic or broker does not exist, naming what does."""
    if kind == "topic":
        await admin.topics.describe([name])
    elif kind == "broker" and name != _ALL:
        ids = [str(broker_id) for broker_id in await admin.cluster.brokers()]
        if name not in ids:
            raise OttlaError(
                ErrorCode.BROKER_NOT_AVAILABLE,
                f"there is no broker {name!r}; there are {', '.join(ids)} (and `{_ALL}`, for what "
                "is set for all of them)",
            )


def _resource(kind: str, name: str) -> str:
    return "" if kind == "broker" and name == _ALL else name
