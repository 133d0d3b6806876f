"""Checks settings before they are stored, and stored ones before they take effect. Pure.

A contradiction within the settings of a new topic (`oddities`) is refused. If a default or a later
change causes it, it is accepted as in Kafka, with a warning: many scripts set a small
`retention.bytes` with the default `segment.bytes` of 1 GiB, and topics are often emptied with a
temporary `retention.ms=1000`.

A stored broker setting that would be refused today is ignored (`usable`). An earlier version, a
tool or another broker with another file may have stored it, and a broker that obeyed it might
accept no connection to change it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ottla.base.errors import ErrorCode, OttlaError, shortened
from ottla.base.settings.broker import BrokerSettings, dynamic_setting, own_name, refused
from ottla.base.settings.order import check_order, check_together, no_connections
from ottla.base.settings.resolve import group_value, topic_value
from ottla.base.settings.tables import (
    BROKER_SETTINGS,
    GROUP_SETTINGS,
    TOPIC_SETTINGS,
    setting_named,
)
from ottla.base.settings.tables.setting import Setting, UpdateMode, Use, Value

MIN_ISR = "min.insync.replicas"
# The settings checked; `retention.…` only if old segments are deleted.
LOOKED_AT = (
    MIN_ISR,
    "cleanup.policy",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.ms",
)


@dataclass(frozen=True, slots=True)
class Oddity:
    """Settings that contradict each other. `sentence` names the consequence and the remedy."""

    names: tuple[str, ...]
    sentence: str


def oddities(values: Mapping[str, object], replicas: int) -> list[Oddity]:
    """Return the contradictions among a topic's values of `LOOKED_AT`, with so many replicas."""
    found: list[Oddity] = []
    least = _number(values, MIN_ISR)
    if least > replicas:
        found.append(
            Oddity(
                (MIN_ISR,),
                f"{MIN_ISR}={least} is above the replication factor {replicas}: so many can "
                f"never be in sync. Set it to at most {replicas}, or give the topic more replicas.",
            )
        )
    if "delete" in _policies(values):
        found += _above_retention(
            values, "bytes", "so a partition may hold up to segment.bytes more than retention.bytes"
        )
        found += _above_retention(
            values, "ms", "so records may be kept up to segment.ms longer than retention.ms"
        )
    return found


def _above_retention(values: Mapping[str, object], unit: str, consequence: str) -> list[Oddity]:
    segment, retention = f"segment.{unit}", f"retention.{unit}"
    size, kept = _number(values, segment), _number(values, retention)
    if kept < 0 or size <= kept:
        return []
    return [
        Oddity(
            (segment, retention),
            f"{segment}={size} is above {retention}={kept}: only whole segments are deleted, "
            f"{consequence}. Set {segment} to at most {kept}, better to a fraction of it.",
        )
    ]


def _number(values: Mapping[str, object], name: str) -> int:
    value = values[name]
    assert isinstance(value, int), name
    return value


def _policies(values: Mapping[str, object]) -> tuple[str, ...]:
    policies = values["cleanup.policy"]
    assert isinstance(policies, tuple)
    return policies


_NO_LIMIT = -1
# Kafka lets clients change these at runtime. Here clients may not set what grants access or holds a
# secret.
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
    """Refuse settings that a topic cannot have; return the oddities of its new settings.

    A `min.insync.replicas` above the replication factor is refused when it is set. Segments above
    retention are accepted, because it is usual to lower retention for a while. Raises
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
    """Return the oddities of a topic with its own `configs`, by the values in effect."""
    values = {name: topic_value(name, configs, broker).value for name in LOOKED_AT}
    return oddities(values, replicas)


def check_group_configs(configs: Mapping[str, str], broker: BrokerSettings) -> None:
    """Refuse settings that a group cannot have, or that exceed the broker's limits."""
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
    """Refuse a change of broker settings that is not possible at runtime (KIP-226).

    `configs` has all settings after the change; only the names in `changed` must be changeable.
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


# This list also names other brokers' folders; the part about this broker is used.
_KEPT = frozenset({"cordoned.log.dirs"})


class Ignored(NamedTuple):
    """A stored value without effect. `broker` is empty for settings of all brokers."""

    broker: str
    name: str
    text: str
    reason: str

    @property
    def sentence(self) -> str:
        """Setting, value, reason and remedy, for the log."""
        whose = f"broker {self.broker}" if self.broker else "all brokers"
        setting = BROKER_SETTINGS.get(self.name)
        shown = "(hidden)" if setting is None or setting.sensitive else shortened(self.text)
        return (
            f"{shortened(self.name)}={shown}, stored for {whose}, is ignored: {self.reason}; "
            f"remove it with: ottla config set broker {self.broker or 'all'} "
            f"--unset {shortened(self.name)}"
        )


class Usable(NamedTuple):
    """The settings that take effect, for all brokers and for this one, and the ignored ones."""

    default: dict[str, str]
    broker: dict[str, str]
    ignored: list[Ignored]


def usable(
    broker_id: str, settings: BrokerSettings, default: Mapping[str, str], broker: Mapping[str, str]
) -> Usable:
    """Return the usable settings among those stored for all brokers and for one broker."""
    found = Usable({}, {}, [])
    for whose, texts, kept in (("", default, found.default), (broker_id, broker, found.broker)):
        for name, text in texts.items():
            reason = _refusal(name, text, per_broker=bool(whose))
            if reason:
                found.ignored.append(Ignored(whose, name, text, reason))
            else:
                kept[name] = text
    for whose, kept in ((broker_id, found.broker), ("", found.default)):
        for name in sorted(kept.keys() - _KEPT):
            reason = _contradiction(name, settings, found)
            if reason:
                found.ignored.append(Ignored(whose, name, kept.pop(name), reason))
    return found


def _refusal(name: str, text: str, *, per_broker: bool) -> str:
    if per_broker and name == MIN_ISR:
        return "it is one number of the cluster"
    try:
        check_broker_configs({name: text}, frozenset({name}), per_broker=per_broker)
    except OttlaError as error:
        return error.message
    return ""


def _contradiction(name: str, settings: BrokerSettings, found: Usable) -> str:
    """Return why the value contradicts other values in effect; empty if it does not."""

    def value(key: str) -> Value:
        for texts in (found.broker, found.default, settings.static):
            if key in texts:
                return BROKER_SETTINGS[key].parse(texts[key])
        return BROKER_SETTINGS[key].default

    try:
        check_order(frozenset({name}), value)
        check_together(frozenset({name}), value)
    except OttlaError as error:
        return error.message
    return ""
