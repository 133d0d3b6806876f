"""A topic's or group's setting in effect on this broker: value, source and synonyms."""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from itertools import dropwhile
from typing import NamedTuple

from ottla.base.errors import OttlaError
from ottla.base.settings.broker import BrokerSettings, dynamic_setting, own_name
from ottla.base.settings.tables import (
    BROKER_SETTINGS,
    BROKER_SYNONYMS,
    GROUP_SETTINGS,
    GROUP_SYNONYMS,
    TOPIC_SETTINGS,
    TOPIC_SYNONYMS,
)
from ottla.base.settings.tables.setting import Setting, Value


class ConfigSource(IntEnum):
    """Where a value comes from, numbered as DescribeConfigs v1+ sends it."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class Synonym(NamedTuple):
    """One source that gives the setting a value; the first of a list is in effect."""

    name: str
    text: str | None
    source: ConfigSource


# As in Kafka, clients see no default of these settings: they are described only if set.
THROTTLES = frozenset(
    {
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)


class Resolved(NamedTuple):
    """A setting with the value in effect and all its sources, strongest first."""

    setting: Setting
    value: Value
    source: ConfigSource
    synonyms: tuple[Synonym, ...]


def topic_value(name: str, overrides: Mapping[str, str], broker: BrokerSettings) -> Resolved:
    """Return the topic setting `name` (in the table) of a topic that sets `overrides` itself."""
    return _resolve(
        TOPIC_SETTINGS[name],
        overrides,
        ConfigSource.DYNAMIC_TOPIC_CONFIG,
        TOPIC_SYNONYMS.get(name, ()),
        broker,
    )


def group_value(name: str, overrides: Mapping[str, str], broker: BrokerSettings) -> Resolved:
    """Return the group setting `name` (in the table) of a group that sets `overrides` itself."""
    resolved = _resolve(
        GROUP_SETTINGS[name],
        overrides,
        ConfigSource.DYNAMIC_GROUP_CONFIG,
        GROUP_SYNONYMS.get(name, ()),
        broker,
    )
    if name in GROUP_SYNONYMS:
        return resolved
    # Kafka lists the default of a group's setting as one more source.
    setting = resolved.setting
    default = Synonym(name, setting.text_of(setting.default), ConfigSource.DEFAULT_CONFIG)
    return resolved._replace(synonyms=(*resolved.synonyms, default))


def broker_value(name: str, broker: BrokerSettings) -> Resolved:
    """Return the broker setting `name` (in the table)."""
    setting = BROKER_SETTINGS[name]
    # As in Kafka, synonyms with a finer unit are not listed: the value shown is that of this name.
    sources = _broker_sources(BROKER_SYNONYMS.get(name, (name,)), broker)
    synonyms = tuple(dropwhile(lambda synonym: synonym.name != name, sources))
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    return Resolved(setting, broker.value(name), source, synonyms)


def listener_values(broker: BrokerSettings) -> list[Resolved]:
    """Return the settings that are set for single listeners."""
    names = {*broker.dynamic_broker, *broker.dynamic_default, *broker.static}
    found: list[Resolved] = []
    for name in sorted(each for each in names if own_name(each) != each):
        try:
            setting = dynamic_setting(name)
        except OttlaError:
            # A setting of a plug-in that is not there; it has no effect.
            continue
        synonyms = tuple(
            Synonym(name, _hide(setting, texts[name]), source)
            for texts, source in _layers(broker)
            if name in texts
        )
        text = next(texts[name] for texts, _ in _layers(broker) if name in texts)
        found.append(Resolved(setting, setting.parse(text), synonyms[0].source, synonyms))
    return found


def _resolve(
    setting: Setting,
    overrides: Mapping[str, str],
    own: ConfigSource,
    behind: tuple[tuple[str, int], ...],
    broker: BrokerSettings,
) -> Resolved:
    synonyms: list[Synonym] = []
    if setting.name in overrides:
        synonyms.append(Synonym(setting.name, _hide(setting, overrides[setting.name]), own))
    inherited: Value = setting.default
    for name, factor in behind:
        value = broker.value(name)
        if value is not None:
            inherited = value * factor if factor != 1 and isinstance(value, int) else value
            if setting.name == "retention.ms" and isinstance(inherited, int) and inherited < 0:
                inherited = -1
            break
    names = tuple(name for name, _ in behind)
    # Kafka omits the default of a coarser name (log.retention.hours), and a value set under it,
    # too. Ottla lists the set value, because it explains the value in effect.
    synonyms += dropwhile(
        lambda synonym: synonym.name != names[0] and synonym.source is ConfigSource.DEFAULT_CONFIG,
        _broker_sources(names, broker),
    )
    value = inherited
    if setting.name in overrides:
        value = setting.parse(overrides[setting.name])
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    return Resolved(setting, value, source, tuple(synonyms))


def _layers(broker: BrokerSettings) -> tuple[tuple[Mapping[str, str], ConfigSource], ...]:
    return (
        (broker.dynamic_broker, ConfigSource.DYNAMIC_BROKER_CONFIG),
        (broker.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        (broker.static, ConfigSource.STATIC_BROKER_CONFIG),
    )


def _broker_sources(names: tuple[str, ...], broker: BrokerSettings) -> Iterator[Synonym]:
    for texts, source in _layers(broker):
        for name in names:
            if name in texts:
                yield Synonym(name, _hide(BROKER_SETTINGS[name], texts[name]), source)
    for name in names:
        setting = BROKER_SETTINGS[name]
        if setting.default is not None and name not in THROTTLES:
            text = _hide(setting, setting.text_of(setting.default))
            yield Synonym(name, text, ConfigSource.DEFAULT_CONFIG)


def _hide(setting: Setting, text: str | None) -> str | None:
    return None if setting.sensitive else text
