"""Settings of client metrics subscriptions (KIP-714): the clients, metrics and interval.

They are stored and described only. No client is asked for metrics yet: GetTelemetrySubscriptions
and PushTelemetry are not served.
"""

import re
from collections.abc import Mapping, Sequence

from ottla.base.errors import ErrorCode, OttlaError, shortened
from ottla.base.settings.alter import Alteration, AlterOperation
from ottla.base.settings.resolve import ConfigSource, Resolved, Synonym
from ottla.base.settings.tables.setting import CLUSTER_WIDE, INT, LIST, Setting

_INTERVAL = "interval.ms"
_MATCH = "match"
_INTERVAL_MS_MIN = 100
_INTERVAL_MS_MAX = 3_600_000
_MATCHED = frozenset(
    {
        "client_id",
        "client_instance_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)

# Two lines a row keep the table readable.
# fmt: off
CLIENT_METRICS_SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting(_INTERVAL, INT, 300_000, None, CLUSTER_WIDE,
                "How often clients push their metrics, in milliseconds."),
        Setting(_MATCH, LIST, (), None, CLUSTER_WIDE,
                "Which clients are meant: pairs such as client_id=.*; empty: all."),
        Setting("metrics", LIST, (), None, CLUSTER_WIDE,
                "Prefixes of the names of metrics that are wanted; empty: none, *: all."),
    )
}
# fmt: on


def client_metrics_value(name: str, configs: Mapping[str, str]) -> Resolved:
    """Return the setting `name` (in the table) of a subscription that sets `configs`."""
    setting = CLIENT_METRICS_SETTINGS[name]
    if name not in configs:
        return Resolved(setting, setting.default, ConfigSource.DEFAULT_CONFIG, ())
    value, source = setting.parse(configs[name]), ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG
    return Resolved(setting, value, source, (Synonym(name, setting.text_of(value), source),))


def check_operations(alterations: Sequence[Alteration]) -> None:
    """Refuse APPEND and SUBTRACT, as Kafka does here. Raises OttlaError(INVALID_CONFIG)."""
    for alteration in alterations:
        if alteration.operation in (AlterOperation.APPEND, AlterOperation.SUBTRACT):
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"Can't {AlterOperation(alteration.operation).name} to key "
                f"{shortened(alteration.name)} because its type is not LIST.",
            )


def check_client_metrics(configs: Mapping[str, str]) -> None:
    """Refuse settings that a subscription cannot have. Raises INVALID_REQUEST, INVALID_CONFIG.

    Each mistake gets the code that Kafka gives it.
    """
    for name, text in configs.items():
        setting = CLIENT_METRICS_SETTINGS.get(name)
        if setting is None:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"Unknown client metrics configuration: {shortened(name)}; there are "
                f"{', '.join(CLIENT_METRICS_SETTINGS)}",
            )
        value = setting.parse(text)
        if isinstance(value, int):
            _check_interval(value)
        elif text.strip():
            _check_list(name, [item.strip() for item in text.split(",")])


def _check_interval(value: int) -> None:
    if not _INTERVAL_MS_MIN <= value <= _INTERVAL_MS_MAX:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {value} for {_INTERVAL}, interval must be between {_INTERVAL_MS_MIN} "
            f"and {_INTERVAL_MS_MAX} (1 hour)",
        )


def _check_list(name: str, items: list[str]) -> None:
    for item in items:
        if not item:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG, f"Configuration '{name}' values must not be empty."
            )
        if name == _MATCH and not _is_pattern(item):
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"Illegal client matching pattern: {shortened(item)}; write one of "
                f"{', '.join(sorted(_MATCHED))}, =, and a regular expression",
            )


def _is_pattern(item: str) -> bool:
    key, _, pattern = item.partition("=")
    if key.strip() not in _MATCHED or not pattern.strip() or "=" in pattern:
        return False
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True
