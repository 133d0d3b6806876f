"""`ottla config`: shows, changes and explains settings."""

from dataclasses import asdict
from typing import Any

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS
from ottla.base.settings.tables import unknown_name
from ottla.base.settings.tables.setting import Setting
from ottla.cli.common import options
from ottla.cli.common.connect import connected
from ottla.cli.text.output import show, show_one
from ottla.cli.text.settings import change_rows, changed_rows, setting_row, show_remarks
from ottla.client.admin import Admin
from ottla.client.admin.configs import ConfigEntry, ConfigResourceType
from ottla.diagnosis.settings import Explanation, explanations, settings_with
from ottla.operations.settings import change_settings


@click.group()
def config() -> None:
    """Show, change and explain settings.

    \b
    ottla config get topic flights
    ottla config set broker all log.retention.ms=3600000
    ottla config explain log.flush.policy
    """  # noqa: D301


KINDS = {
    "topic": ConfigResourceType.TOPIC,
    "broker": ConfigResourceType.BROKER,
    "group": ConfigResourceType.GROUP,
}
TABLES: dict[str, dict[str, Setting]] = {
    "topic": TOPIC_SETTINGS,
    "broker": BROKER_SETTINGS,
    "group": GROUP_SETTINGS,
}
# The word for all brokers on the command line; in the protocol it is "".
_ALL = "all"

kind_argument = click.argument("kind", type=click.Choice(list(KINDS)))
name_argument = click.argument("name")


async def require(admin: Admin, kind: str, name: str) -> None:
    """Raise an error if the topic or broker does not exist; it names those that do."""
    if kind == "topic":
        await admin.topics.describe_all([name])
    elif kind == "broker" and name != _ALL:
        ids = [str(broker_id) for broker_id in await admin.cluster.brokers()]
        if name not in ids:
            raise OttlaError(
                ErrorCode.BROKER_NOT_AVAILABLE,
                f"there is no broker {name!r}; there are {', '.join(ids)} (and `{_ALL}`, for what "
                "is set for all of them)",
            )


def resource(kind: str, name: str) -> str:
    """Return the resource's name in the protocol."""
    return "" if kind == "broker" and name == _ALL else name


@config.command()
@click.argument("setting", default="")
@options.output
def explain(setting: str, form: str) -> None:
    """Explain SETTING, a setting of topics, brokers or groups. Needs no broker.

    \b
    ottla config explain retention.ms
    ottla config explain log.flush.policy
    ottla config explain                           every setting there is

    A part of a name lists the settings that have it, such as `ottla config explain retention`.
    """  # noqa: D301
    found = explanations(setting)
    if not found:
        _list_alike(setting, form)
        return
    if form == "json":
        show("json", [_row(one, one.default) for one in found], [])
        return
    for number, one in enumerate(found):
        if number:
            click.echo()
        row = _row(one, one.default_words)
        show_one(form, {name: value for name, value in row.items() if value not in ("", ())})


def _list_alike(part: str, form: str) -> None:
    rows = [{"setting": one.name, "kind": one.kind, "doc": one.doc} for one in settings_with(part)]
    show(form, rows, ["setting", "kind", "doc"])


def _row(one: Explanation, default: str | None) -> dict[str, Any]:
    row = asdict(one)
    del row["default_words"]
    return {"setting": row.pop("name"), **row, "default": default}


@config.command()
@kind_argument
@name_argument
@click.argument("settings", nargs=-1, metavar="[SETTING]...")
@click.option("--changed", is_flag=True, help="Only what was set, not defaults.")
@connected
@options.output
async def get(
    admin: Admin, kind: str, name: str, settings: tuple[str, ...], changed: bool, form: str
) -> None:
    """Show settings of a topic, a broker or a group, and their sources.

    \b
    ottla config get topic flights
    ottla config get topic flights retention.ms cleanup.policy
    ottla config get broker 0 --changed
    ottla config get broker all                    what is set for all brokers
    """  # noqa: D301
    found = await _settings(admin, kind, name, settings)
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


@config.command(name="set")
@kind_argument
@name_argument
@click.argument("assignments", nargs=-1, metavar="[SETTING=VALUE]...")
@options.unset
@connected
@options.output
async def set_(
    admin: Admin,
    kind: str,
    name: str,
    assignments: tuple[str, ...],
    unset: tuple[str, ...],
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

    await require(admin, kind, name)
    done = await change_settings(admin, KINDS[kind], resource(kind, name), changes, TABLES[kind])
    show(form, change_rows(done), ["setting", "old", "new"])
    show_remarks(done)
