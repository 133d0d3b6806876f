"""The settings of a share group: its own before the broker's."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ottla.base.settings.offset_reset import Reset, parse_reset
from ottla.group.consumer.pace import Pace
from ottla.share import dead_letters
from ottla.share.deliveries import Limits

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


@dataclass(frozen=True, slots=True)
class ShareGroupConfig:
    """What the leaders of partitions need to know of a group.

    `letters` is its dead-letter topic, "" where it has none; `copies` whether dead letters hold
    what their records held.
    """

    limits: Limits
    reset: Reset
    committed: bool
    letters: str
    copies: bool


def share_group_config(broker: "Broker", group_id: str) -> ShareGroupConfig:
    """The settings as they are now."""
    own = broker.image.group_configs.get(group_id, {})
    value = partial(_value, broker, own)
    letters = own.get(dead_letters.TOPIC_NAME, "").strip()
    return ShareGroupConfig(
        Limits(
            lock_ms=value("group.share.record.lock.duration.ms"),
            delivery_count=value("group.share.delivery.count.limit"),
            records=value("group.share.partition.max.record.locks"),
            renews=own.get("share.renew.acknowledge.enable", "true").strip().lower() == "true",
            dead_letters=bool(letters),
        ),
        parse_reset(own.get("share.auto.offset.reset", "latest")),
        own.get("share.isolation.level", "").strip().lower() == "read_committed",
        letters,
        own.get(dead_letters.COPY_RECORD, "").strip().lower() == "true",
    )


def share_pace(broker: "Broker", group_id: str) -> Pace:
    """How often members of a group report, and after which silence they are out."""
    value = partial(_value, broker, broker.image.group_configs.get(group_id, {}))
    return Pace(value("group.share.session.timeout.ms"), value("group.share.heartbeat.interval.ms"))


def _value(broker: "Broker", own: Mapping[str, str], name: str) -> int:
    """A number by its name as a broker's setting, of which the group's is a part."""
    text = own.get(name.removeprefix("group."))
    return broker.settings.integer(name) if text is None else int(text)
