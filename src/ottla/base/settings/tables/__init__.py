"""A row for each setting of brokers, topics and groups. Begin in `lookup`."""

from ottla.base.settings.tables.broker_foreign import FORMER_SETTINGS
from ottla.base.settings.tables.lookup import (
    BROKER_SETTINGS,
    BROKER_SYNONYMS,
    GROUP_SETTINGS,
    GROUP_SYNONYMS,
    TOPIC_SETTINGS,
    setting_named,
    unknown_name,
)
from ottla.base.settings.tables.topic import TOPIC_SYNONYMS

__all__ = [
    "BROKER_SETTINGS",
    "BROKER_SYNONYMS",
    "FORMER_SETTINGS",
    "GROUP_SETTINGS",
    "GROUP_SYNONYMS",
    "TOPIC_SETTINGS",
    "TOPIC_SYNONYMS",
    "setting_named",
    "unknown_name",
]
