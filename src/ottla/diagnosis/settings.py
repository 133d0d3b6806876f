"""Explains settings from Ottla's own tables, and finds those set by an operator. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.base.quantities import size_words, span_words
from ottla.base.settings import (
    BROKER_SETTINGS,
    GROUP_SETTINGS,
    TOPIC_SETTINGS,
    ConfigType,
    Setting,
    UpdateMode,
)
from ottla.base.settings.tables import (
    BROKER_SYNONYMS,
    FORMER_SETTINGS,
    GROUP_SYNONYMS,
    TOPIC_SYNONYMS,
    unknown_name,
)
from ottla.base.settings.tables.setting import Use
from ottla.client.admin.configs import ConfigEntry, ConfigSource

_MIN_ISR = "min.insync.replicas"
# Where a value comes from, for output.
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


def set_by_operator(configs: Mapping[str, ConfigEntry]) -> list[ConfigEntry]:
    """Return the settings that are not at their defaults, by name."""
    return [
        configs[name]
        for name in sorted(configs)
        if configs[name].source not in (ConfigSource.DEFAULT, ConfigSource.UNKNOWN)
        and not _is_first_value(configs[name])
    ]


def _is_first_value(entry: ConfigEntry) -> bool:
    """Whether this is the default `min.insync.replicas` that the cluster's first broker stored."""
    is_stored = entry.source is ConfigSource.DYNAMIC_DEFAULT_BROKER and entry.name == _MIN_ISR
    return is_stored and any(
        source is ConfigSource.DEFAULT and value == entry.value
        for _, value, source in entry.synonyms
    )


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


@dataclass(frozen=True, slots=True)
class Explanation:
    """The description of a setting of one kind (topic, broker or group). Texts may be empty.

    `default_words` is a long default number with its value in larger units. `synonyms` are
    settings that replace this one or give its default, the finest unit first.
    """

    name: str
    kind: str
    doc: str
    type: str = ""
    default: str | None = None
    default_words: str | None = None
    rule: str = ""
    change: str = ""
    synonyms: tuple[str, ...] = ()
    differs: str = ""
    use: str = ""


def explanations(name: str) -> list[Explanation]:
    """Explain the setting `name` for each kind that has it; empty if no kind has it."""
    found = [_explanation(kind, table[name]) for kind, table in _TABLES if name in table]
    if name in FORMER_SETTINGS:
        found.append(
            Explanation(
                name,
                "broker",
                f"A setting of earlier versions of Kafka. {FORMER_SETTINGS[name]}",
                use=_USES[Use.UNUSED],
            )
        )
    return found


def settings_with(part: str) -> list[Explanation]:
    """Return the settings whose names contain `part`. Raises OttlaError, naming similar ones."""
    found = [
        _explanation(kind, entry)
        for kind, table in _TABLES
        for name, entry in table.items()
        if part in name and not entry.internal
    ]
    if not found:
        names = {name for _, table in _TABLES for name in table} | set(FORMER_SETTINGS)
        raise unknown_name(part, names, "topic, broker or group")
    return found


def _explanation(kind: str, setting: Setting) -> Explanation:
    default = "(hidden)" if setting.sensitive else setting.text_of(setting.default)
    return Explanation(
        setting.name,
        kind,
        setting.doc,
        ConfigType(setting.type).name.lower(),
        default,
        _with_words(setting, default),
        setting.validator.rule if setting.validator else "",
        f"while running, for one {kind}" if kind != "broker" else _CHANGES[setting.update],
        tuple(_synonyms(kind, setting.name)),
        setting.differs,
        _USES[setting.use],
    )


def _with_words(setting: Setting, default: str | None) -> str | None:
    """Return a long number, followed by its value with a unit."""
    value = setting.default
    if not isinstance(value, int) or isinstance(value, bool):
        return default if default != "" else "(empty)"
    words = value_words(setting.name, value)
    return f"{default} ({words})" if words else default


def value_words(name: str, value: int) -> str:
    """Return a long number of a setting in larger units; empty if it needs no other words."""
    if value < 1000:
        return ""
    if value == _LONGEST:
        return "never" if name.endswith((".ms", ".messages")) else ""
    if name.endswith(".ms"):
        return span_words(value)
    return size_words(value) if name.endswith(".bytes") else ""


def _synonyms(kind: str, name: str) -> list[str]:
    """Return the settings that give its default or replace it, finest unit first."""
    if kind == "topic":
        return [f"broker's {other}" for other, _ in TOPIC_SYNONYMS.get(name, ())]
    if kind == "group":
        return [f"broker's {other}" for other, _ in GROUP_SYNONYMS.get(name, ())]
    return [other for other in BROKER_SYNONYMS.get(name, ()) if other != name]
