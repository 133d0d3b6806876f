"""Ignores stored TLS settings that do not work at a broker's start; its file's are used instead.

A broker rejects changed settings that it cannot use. But a key store named by a stored setting may
be missing at the next start. The broker then starts with the stores in its `server.properties`, and
logs an ERROR line. If the file names no store, the start fails. `ssl.client.auth` is always kept.
"""

import logging
from collections.abc import Mapping
from itertools import combinations

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings.broker import BrokerSettings, own_name
from ottla.network.tls_security import check_listeners

_log = logging.getLogger(__name__)

_TRUST = ("ssl.truststore.",)
# Groups of settings that only make sense together. The first groups are dropped first.
_GROUPS = (
    ("ssl.keystore.", "ssl.key."),
    _TRUST,
    ("ssl.cipher.", "ssl.enabled."),
)


class TlsAtStart:
    """The stored TLS settings that this broker has ignored since its start."""

    def __init__(self) -> None:
        self._without: dict[str, str] = {}

    def check(self, broker_id: str, settings: BrokerSettings) -> None:
        """Drop the settings with which the listeners cannot start.

        Raises OttlaError(INVALID_CONFIG) if the broker's file has no replacement.
        """
        stored = {
            name: text
            for name, text in settings.dynamic_broker.items()
            if own_name(name).startswith("ssl.")
        }
        if not stored:
            return
        try:
            check_listeners(settings)
        except OttlaError as error:
            self._without = _given_up(broker_id, settings, stored, error.message)

    def usable(self, stored: Mapping[str, str]) -> dict[str, str]:
        """Return the stored settings without the dropped ones, until one of these changes."""
        if any(stored.get(name) != text for name, text in self._without.items()):
            self._without = {}
        return {name: text for name, text in stored.items() if name not in self._without}


def _given_up(
    broker_id: str, settings: BrokerSettings, stored: Mapping[str, str], why: str
) -> dict[str, str]:
    for chosen in (each for count in (1, 2, 3) for each in combinations(_GROUPS, count)):
        prefixes = tuple(prefix for group in chosen for prefix in group)
        without = {
            name: text for name, text in stored.items() if own_name(name).startswith(prefixes)
        }
        if without and _starts(settings, without):
            _log.error("%s", _sentence(broker_id, without, why))
            return without
    names = ", ".join(sorted(stored))
    raise OttlaError(
        ErrorCode.INVALID_CONFIG,
        f"{why}; {names}, stored for broker {broker_id}, cannot be used, and server.properties has"
        " no settings that can be used in their place: put the file back, or name a usable one in"
        " server.properties",
    )


def _starts(settings: BrokerSettings, without: Mapping[str, str]) -> bool:
    for name in without:
        # Without a trust store this broker would trust public authorities when it connects.
        own = own_name(name)
        if own.startswith(_TRUST) and not any(
            settings.static.get(prefix + store)
            for prefix in (name.removesuffix(own), "")
            for store in ("ssl.truststore.location", "ssl.truststore.certificates")
        ):
            return False
    later = BrokerSettings(settings.static)
    kept = {name: text for name, text in settings.dynamic_broker.items() if name not in without}
    later.set_dynamic(settings.dynamic_default, kept)
    try:
        check_listeners(later)
    except OttlaError:
        return False
    return True


def _sentence(broker_id: str, without: Mapping[str, str], why: str) -> str:
    names = sorted(without)
    unset = " ".join(f"--unset {name}" for name in names)
    return (
        f"{why}: {', '.join(names)}, stored for broker {broker_id}, are ignored until the broker"
        " starts again, and those of server.properties are in use, which may name other"
        " certificates and trust others: put the file back and restart the broker, or remove the"
        f" settings with: ottla config set broker {broker_id} {unset}"
    )
