"""Finds the settings that an operator has set. Pure."""

from collections.abc import Mapping

from ottla.client.admin.configs import ConfigEntry, ConfigSource

_MIN_ISR = "min.insync.replicas"


def set_by_operator(configs: Mapping[str, ConfigEntry]) -> list[ConfigEntry]:
    """The settings that are not at their defaults, by name."""
    return [
        configs[name]
        for name in sorted(configs)
        if configs[name].source not in (ConfigSource.DEFAULT, ConfigSource.UNKNOWN)
        and not _is_first_value(configs[name])
    ]


def _is_first_value(entry: ConfigEntry) -> bool:
    """Whether it is the `min.insync.replicas` that the cluster's first broker stored."""
    is_stored = entry.source is ConfigSource.DYNAMIC_DEFAULT_BROKER and entry.name == _MIN_ISR
    return is_stored and any(
        source is ConfigSource.DEFAULT and value == entry.value
        for _, value, source in entry.synonyms
    )
