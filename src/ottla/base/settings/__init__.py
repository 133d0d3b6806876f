"""Settings of brokers, topics and groups: tables, parsing, values in effect and their sources."""

from ottla.base.settings.broker import BrokerSettings, is_secret, read_broker_settings
from ottla.base.settings.properties import parse_properties, properties_text
from ottla.base.settings.resolve import ConfigSource, Resolved, topic_value
from ottla.base.settings.tables import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS
from ottla.base.settings.tables.setting import ConfigType, Setting, UpdateMode, Value

__all__ = [
    "BROKER_SETTINGS",
    "GROUP_SETTINGS",
    "TOPIC_SETTINGS",
    "BrokerSettings",
    "ConfigSource",
    "ConfigType",
    "Resolved",
    "Setting",
    "UpdateMode",
    "Value",
    "is_secret",
    "parse_properties",
    "properties_text",
    "read_broker_settings",
    "topic_value",
]
