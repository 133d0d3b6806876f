"""`ottla config explain`: what a setting does, from Ottla's own tables, without a broker."""

from typing import Any

import click

from ottla.base.quantities import size_words, span_words
from ottla.base.settings import (
    BROKER_SETTINGS,
    GROUP_SETTINGS,
    TOPIC_SETTINGS,
    ConfigType,
    Setting,
    UpdateMode,
)
from ottla.base.settings.former import FORMER_SETTINGS
from ottla.base.settings.setting import Use
from ottla.base.settings.synonyms import BROKER_SYNONYMS, GROUP_SYNONYMS, TOPIC_SYNONYMS
from ottla.base.settings.tables import unknown_name
from ottla.cli import options
from ottla.cli.text.output import show, show_one

_TABLES = (("topic", TOPIC_SETTINGS), ("broker", BROKER_SETTINGS), ("group", GROUP_SETTINGS))
_CHANGES = {
    UpdateMode.READ_ONLY: "only in the broker's file, with a restart",
    UpdateMode.PER_BROKER: "while running, for one broker",
    UpdateMode.CLUSTER_WIDE: "while running, for one broker or all",
}
_USES = {
    Use.USED: "",
    Use.UNUSED: "accepted, and changes nothing",
    Use.REFUSED: "refused where it is set: Ottla has no such part",
}
_LONGEST = 2**63 - 1


@click.command()
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
    found = [_explained(kind, table[setting], form) for kind, table in _TABLES if setting in table]
    if setting in FORMER_SETTINGS:
        found.append(_former(setting))
    if not found:
        _list_alike(setting, form)
        return
    if form == "json":
        show("json", found, [])
        return
    for number, answer in enumerate(found):
        if number:
            click.echo()
        show_one(form, {name: value for name, value in answer.items() if value not in ("", [])})


def _list_alike(part: str, form: str) -> None:
    """The settings whose names contain `part`. Raises OttlaError naming the nearest for none."""
    rows = [
        {"setting": name, "kind": kind, "doc": entry.doc}
        for kind, table in _TABLES
        for name, entry in table.items()
        if part in name and not entry.internal
    ]
    if not rows:
        names = {name for _, table in _TABLES for name in table} | set(FORMER_SETTINGS)
        raise unknown_name(part, names, "topic, broker or group")
    if form == "json":
        show("json", rows, [])
        return
    show(form, rows, ["setting", "kind", "doc"])


def _explained(kind: str, setting: Setting, form: str) -> dict[str, Any]:
    default = "(hidden)" if setting.sensitive else setting.text_of(setting.default)
    return {
        "setting": setting.name,
        "kind": kind,
        "doc": setting.doc,
        "type": ConfigType(setting.type).name.lower(),
        "default": default if form == "json" else _with_words(setting, default),
        "rule": setting.validator.rule if setting.validator else "",
        "change": _changes(kind, setting),
        "synonyms": _synonyms(kind, setting.name),
        "differs": setting.differs,
        "use": _USES[setting.use],
    }


def _changes(kind: str, setting: Setting) -> str:
    if kind != "broker":
        return f"while running, for one {kind}"
    return _CHANGES[setting.update]


def _with_words(setting: Setting, default: str | None) -> str | None:
    """Long numbers as people say them beside."""
    value = setting.default
    if not isinstance(value, int) or isinstance(value, bool) or value < 1000:
        return default if default != "" else "(empty)"
    if value == _LONGEST:
        return f"{default} (never)" if setting.name.endswith((".ms", ".messages")) else default
    if setting.name.endswith(".ms"):
        return f"{default} ({span_words(value)})"
    if setting.name.endswith(".bytes"):
        return f"{default} ({size_words(value)})"
    return default


def _synonyms(kind: str, name: str) -> list[str]:
    """What gives its value where it is not set itself, or stands in for it, finest first."""
    if kind == "topic":
        return [f"broker's {other}" for other, _ in TOPIC_SYNONYMS.get(name, ())]
    if kind == "group":
        return [f"broker's {other}" for other, _ in GROUP_SYNONYMS.get(name, ())]
    return [other for other in BROKER_SYNONYMS.get(name, ()) if other != name]


def _former(name: str) -> dict[str, Any]:
    return {
        "setting": name,
        "kind": "broker",
        "doc": f"A setting of earlier versions of Kafka. {FORMER_SETTINGS[name]}",
        "type": "",
        "default": None,
        "rule": "",
        "change": "",
        "synonyms": [],
        "differs": "",
        "use": _USES[Use.UNUSED],
    }
