"""The settings of share groups. A group's own value overrides the broker's."""

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.base.settings import BrokerSettings
from ottla.base.settings.tables.validators import Reset, parse_reset
from ottla.broker.runtime.view import ClusterView
from ottla.group.values.settings import Pace
from ottla.share import dead_letters
from ottla.share.deliveries import DeliveryLimits


@dataclass(frozen=True, slots=True)
class ShareGroupConfig:
    """The group settings that the leader of a partition uses.

    `committed` is True if share.isolation.level is read_committed. `letters` is the dead-letter
    topic, or "" if none is set. `copies` is True if dead letters get the key, value and headers of
    the source record.
    """

    limits: DeliveryLimits
    reset: Reset
    committed: bool
    letters: str
    copies: bool


@dataclass(frozen=True, slots=True)
class ShareGroupSettings:
    """Looks up the current settings of share groups."""

    view: ClusterView
    settings: BrokerSettings

    # Hot: once per partition of a share fetch.
    def config(self, group_id: str) -> ShareGroupConfig:
        """Return the settings for the leaders of partitions."""
        own = self._own(group_id)
        letters = own.get(dead_letters.TOPIC_NAME, "").strip()
        return ShareGroupConfig(
            DeliveryLimits(
                lock_ms=self._value(own, "group.share.record.lock.duration.ms"),
                delivery_count=self._value(own, "group.share.delivery.count.limit"),
                records=self._value(own, "group.share.partition.max.record.locks"),
                renews=own.get("share.renew.acknowledge.enable", "true").strip().lower() == "true",
                dead_letters=bool(letters),
            ),
            parse_reset(own.get("share.auto.offset.reset", "latest")),
            own.get("share.isolation.level", "").strip().lower() == "read_committed",
            letters,
            own.get(dead_letters.COPY_RECORD, "").strip().lower() == "true",
        )

    def pace(self, group_id: str) -> Pace:
        """Return the members' session timeout and heartbeat interval."""
        own = self._own(group_id)
        return Pace(
            self._value(own, "group.share.session.timeout.ms"),
            self._value(own, "group.share.heartbeat.interval.ms"),
        )

    def _own(self, group_id: str) -> Mapping[str, str]:
        return self.view.image.group_configs.get(group_id, {})

    def _value(self, own: Mapping[str, str], name: str) -> int:
        """Return a setting by its broker name. Its group name lacks the prefix `group.`."""
        text = own.get(name.removeprefix("group."))
        return self.settings.integer(name) if text is None else int(text)
