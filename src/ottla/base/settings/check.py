"""Checks what someone wants to set, before it is stored."""

from collections.abc import Mapping

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings.broker import BrokerSettings, refused
from ottla.base.settings.resolve import topic_value
from ottla.base.settings.setting import Setting, UpdateMode, Use
from ottla.base.settings.tables import (
    BROKER_SETTINGS,
    GROUP_SETTINGS,
    TOPIC_SETTINGS,
    setting_named,
)


def check_topic_configs(configs: Mapping[str, str], broker: BrokerSettings) -> None:
    """Refuse settings a topic cannot have. Raises OttlaError(INVALID_CONFIG)."""
    for name, text in configs.items():
        _check(setting_named(TOPIC_SETTINGS, name, "topic"), text)
    least = topic_value("min.compaction.lag.ms", configs, broker).value
    most = topic_value("max.compaction.lag.ms", configs, broker).value
    assert isinstance(least, int)
    assert isinstance(most, int)
    if least > most:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"conflict topic config setting min.compaction.lag.ms ({least}) > "
            f"max.compaction.lag.ms ({most}); lower the first or raise the second",
        )


def check_group_configs(configs: Mapping[str, str], broker: BrokerSettings) -> None:
    """Refuse settings a group cannot have, or that lie outside the broker's bounds."""
    for name, text in configs.items():
        value = _check(setting_named(GROUP_SETTINGS, name, "group"), text)
        kind, _, rest = name.partition(".")
        for bound, word in (("min", "below"), ("max", "above")):
            limit_name = f"group.{kind}.{bound}.{rest}"
            if limit_name not in BROKER_SETTINGS or not isinstance(value, int):
                continue
            limit = broker.integer(limit_name)
            if (value < limit) if bound == "min" else (value > limit):
                raise OttlaError(
                    ErrorCode.INVALID_CONFIG,
                    f"{name} = {value} is {word} {limit_name} = {limit}",
                )


def check_broker_configs(
    configs: Mapping[str, str], changed: frozenset[str], *, per_broker: bool
) -> None:
    """Refuse a change of broker settings while running (KIP-226).

    `configs` is all that would be set; only the names in `changed` must be changeable.
    """
    for name, text in configs.items():
        if name not in changed:
            continue
        setting = setting_named(BROKER_SETTINGS, name, "broker")
        if setting.update is UpdateMode.READ_ONLY:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"Cannot update these configs dynamically: {name}; change it in the broker's "
                "server.properties and restart the broker",
            )
        if setting.update is UpdateMode.PER_BROKER and not per_broker:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"Cannot update security configs or other per-broker configs at the cluster "
                f"level: {name}; name a broker",
            )
        _check(setting, text)


def _check(setting: Setting, text: str) -> object:
    value = setting.parse(text)
    if setting.use is Use.REFUSED and value not in (setting.default, "", False, ()):
        raise refused(setting)
    return value
