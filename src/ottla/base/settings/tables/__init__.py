"""A row for each setting of brokers, topics and groups. Begin in `lookup`."""

from ottla.base.settings.tables.lookup import (
    BROKER_SETTINGS,
    GROUP_SETTINGS,
    TOPIC_SETTINGS,
    setting_named,
    unknown_name,
)

__all__ = [
    "BROKER_SETTINGS",
    "GROUP_SETTINGS",
    "TOPIC_SETTINGS",
    "setting_named",
    "unknown_name",
]
