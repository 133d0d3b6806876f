"""Settings as commands show and change them; for `ottla topic` and `ottla config`."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import click

from ottla.base.errors import OttlaError
from ottla.cli.connect import naming_nearest, nearest_names
from ottla.client.admin import Admin
from ottla.client.admin.configs import ConfigEntry, ConfigSource, ResourceKind

SOURCE_WORDS = {
    ConfigSource.UNKNOWN: "unknown",
    ConfigSource.TOPIC: "topic",
    ConfigSource.DYNAMIC_BROKER: "broker-dynamic",
    ConfigSource.DYNAMIC_DEFAULT_BROKER: "cluster-dynamic",
    ConfigSource.STATIC_BROKER: "broker-file",
    ConfigSource.DEFAULT: "default",
    ConfigSource.DYNAMIC_BROKER_LOGGER: "logger",
    ConfigSource.CLIENT_METRICS: "client-metrics",
    ConfigSource.GROUP: "group",
}
_HIDDEN = "(hidden)"
_MIN_ISR = "min.insync.replicas"
# Kafka's brokers answer a change before they know of it themselves.
_LOOKS_MAX = 30
_PAUSE_S = 0.1


def setting_row(entry: ConfigEntry) -> dict[str, Any]:
    """One setting: what it is worth, and why."""
    return {
        "setting": entry.name,
        "value": _HIDDEN if entry.is_sensitive else entry.value,
        "source": SOURCE_WORDS[entry.source],
        "read_only": entry.is_read_only,
        "synonyms": [
            {"setting": name, "value": value, "source": SOURCE_WORDS[source]}
            for name, value, source in entry.synonyms
        ],
    }


def chosen(configs: Mapping[str, ConfigEntry]) -> list[dict[str, Any]]:
    """The settings that somebody set, in the order of their names."""
    return [
        setting_row(configs[name])
        for name in sorted(configs)
        if configs[name].source not in (ConfigSource.DEFAULT, ConfigSource.UNKNOWN)
        and not _is_inherited_default(configs[name])
    ]


def _is_inherited_default(entry: ConfigEntry) -> bool:
    """Whether it is what the cluster began with: `min.insync.replicas` always stands in it."""
    begun = entry.source is ConfigSource.DYNAMIC_DEFAULT_BROKER and entry.name == _MIN_ISR
    return begun and any(
        source is ConfigSource.DEFAULT and value == entry.value
        for _, value, source in entry.synonyms
    )


async def change_settings(
    admin: Admin,
    kind: ResourceKind,
    name: str,
    changes: Mapping[str, str | None],
    known: Iterable[str],
) -> list[dict[str, Any]]:
    """Make the changes; a row for each setting with its old value and its new one.

    Raises OttlaError where the broker refuses them, naming the nearest of the names `known`.
    Kafka's brokers store names that no part of them reads: a line on standard error says so.
    """
    before = await admin.configs.describe(kind, name, changes)
    try:
        await admin.configs.alter(kind, name, changes)
    except OttlaError as error:
        raise naming_nearest(error, changes, known) from None
    for _ in range(_LOOKS_MAX):
        after = await admin.configs.describe(kind, name, changes)
        if all(_is_made(before.get(key), after.get(key), changes[key]) for key in changes):
            break
        await asyncio.sleep(_PAUSE_S)
    for hint in nearest_names(changes, known):
        click.echo(f"the broker took a setting that Ottla does not know: {hint}", err=True)
    return [
        {"setting": key, "old": _value(before.get(key)), "new": _value(after.get(key))}
        for key in changes
    ]


def _is_made(before: ConfigEntry | None, after: ConfigEntry | None, asked: str | None) -> bool:
    """Whether a change is seen, or cannot be told from none."""
    if before is None or after is None or after.is_sensitive:
        return True
    if (before.value, before.source) != (after.value, after.source):
        return True
    if asked is None:
        return before.source in (ConfigSource.DEFAULT, ConfigSource.STATIC_BROKER)
    return before.value == asked


def _value(entry: ConfigEntry | None) -> str | None:
    if entry is None:
        return None
    return _HIDDEN if entry.is_sensitive else entry.value
