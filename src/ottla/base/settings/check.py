"""Checks settings before they are stored."""

from collections.abc import Mapping

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings.broker import BrokerSettings, dynamic_setting, own_name, refused
from ottla.base.settings.declaration.setting import Setting, UpdateMode, Use
from ottla.base.settings.oddities import LOOKED_AT, MIN_ISR, Oddity, oddities
from ottla.base.settings.order import no_connections
from ottla.base.settings.resolve import group_value, topic_value
from ottla.base.settings.tables import (
    BROKER_SETTINGS,
    GROUP_SETTINGS,
    TOPIC_SETTINGS,
    setting_named,
)

_NO_LIMIT = -1
# Kafka lets clients change these at runtime. Here, clients may not set anything that grants access
# or holds a secret.
_AT_START = "sasl."
# Changeable at runtime for one listener, but not for all: Kafka's
# SslConfigs.RECONFIGURABLE_CONFIGS.
_OF_LISTENERS = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)


def check_topic_configs(configs: Mapping[str, str], broker: BrokerSettings) -> None:
    """Refuse settings a topic cannot have. Raises OttlaError(INVALID_CONFIG)."""
    for name, text in configs.items():
        value = _check(setting_named(TOPIC_SETTINGS, name, "topic"), text)
        if name == "retention.bytes" and isinstance(value, int) and value < _NO_LIMIT:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"Invalid value {text} for configuration {name}: it must be at least 0, or -1 for "
                "no limit",
            )
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


def check_new_topic(configs: Mapping[str, str], replicas: int, broker: BrokerSettings) -> None:
    """Refuse settings that a new topic cannot have, or that contradict each other (`oddities`).

    Only contradictions within `configs` are refused. Raises OttlaError(INVALID_CONFIG).
    """
    check_topic_configs(configs, broker)
    for oddity in topic_oddities(configs, replicas, broker):
        if all(name in configs for name in oddity.names):
            raise OttlaError(ErrorCode.INVALID_CONFIG, oddity.sentence)


def check_changed_topic(
    before: Mapping[str, str], after: Mapping[str, str], replicas: int, broker: BrokerSettings
) -> list[Oddity]:
    """Refuse settings that a topic cannot have; the oddities of its new settings.

    A `min.insync.replicas` that no replicas can meet is refused when it is set; segments above
    retention are not, as it is usual to lower retention for a while. Raises
    OttlaError(INVALID_CONFIG).
    """
    check_topic_configs(after, broker)
    found = topic_oddities(after, replicas, broker)
    for oddity in found:
        is_set = MIN_ISR in after and after[MIN_ISR] != before.get(MIN_ISR)
        if oddity.names == (MIN_ISR,) and is_set:
            raise OttlaError(ErrorCode.INVALID_CONFIG, oddity.sentence)
    return found


def topic_oddities(
    configs: Mapping[str, str], replicas: int, broker: BrokerSettings
) -> list[Oddity]:
    """The oddities of a topic with its own `configs`, by the values in effect."""
    values = {name: topic_value(name, configs, broker).value for name in LOOKED_AT}
    return oddities(values, replicas)


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
    for kind in ("consumer", "share", "streams"):
        _check_heartbeats(kind, configs, broker)


def _check_heartbeats(kind: str, configs: Mapping[str, str], broker: BrokerSettings) -> None:
    names = f"{kind}.heartbeat.interval.ms", f"{kind}.session.timeout.ms"
    if not any(name in configs for name in names):
        return
    interval, timeout = (group_value(name, configs, broker).value for name in names)
    assert isinstance(interval, int)
    assert isinstance(timeout, int)
    if interval >= timeout:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"{names[0]} = {interval} is not below {names[1]} = {timeout}: a member would be "
            "taken for dead between two heartbeats",
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
        if name in _OF_LISTENERS:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                "These security configs can be dynamically updated only per-listener using the "
                f"listener prefix: {name}; write listener.name.NAME.{name}",
            )
        setting = dynamic_setting(name)
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
        if name.startswith(_AT_START) and setting.use is Use.USED:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"Cannot update these configs dynamically: {name}; it is read when a broker "
                "starts: change it in server.properties and restart the broker",
            )
        value = _check(setting, text)
        if value == 0 and own_name(name) != name:
            raise OttlaError(ErrorCode.INVALID_CONFIG, no_connections(name))


def _check(setting: Setting, text: str) -> object:
    value = setting.parse(text)
    if setting.use is Use.REFUSED and value not in (setting.default, "", False, ()):
        raise refused(setting)
    return value
