"""Dynamic broker settings in the store: decides which may take effect. Pure.

An earlier version, a tool, or another broker with another file may have stored a value that is
refused today. It is ignored: a broker that obeyed it might accept no connection to change it.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.base.errors import OttlaError, shortened
from ottla.base.settings.broker import BrokerSettings
from ottla.base.settings.check import check_broker_configs
from ottla.base.settings.declaration.setting import Value
from ottla.base.settings.oddities import MIN_ISR
from ottla.base.settings.order import check_order, check_together
from ottla.base.settings.tables import BROKER_SETTINGS

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
    """The usable settings among those stored for all brokers and for the broker `broker_id`."""
    found = Usable({}, {}, [])
    for whose, texts, kept in (("", default, found.default), (broker_id, broker, found.broker)):
        for name, text in texts.items():
            reason = _alone(name, text, per_broker=bool(whose))
            if reason:
                found.ignored.append(Ignored(whose, name, text, reason))
            else:
                kept[name] = text
    for whose, kept in ((broker_id, found.broker), ("", found.default)):
        for name in sorted(kept.keys() - _KEPT):
            reason = _together(name, settings, found)
            if reason:
                found.ignored.append(Ignored(whose, name, kept.pop(name), reason))
    return found


def _alone(name: str, text: str, *, per_broker: bool) -> str:
    if per_broker and name == MIN_ISR:
        return "it is one number of the cluster"
    try:
        check_broker_configs({name: text}, frozenset({name}), per_broker=per_broker)
    except OttlaError as error:
        return error.message
    return ""


def _together(name: str, settings: BrokerSettings, found: Usable) -> str:
    """Why the value contradicts the others in effect; empty if it does not."""

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
