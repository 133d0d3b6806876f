"""Brokers that died a moment ago, still named to clients that need them in Metadata.

librdkafka (2.10 and later) takes down its thread for a broker that Metadata does not name any
more, and yet may go on waiting for it: `send_offsets_to_transaction` hangs where the group's
coordinator was that broker (librdkafka #5511), and does not check its timeout (#5456). As long as
the broker is named, the library notices by itself that it is down, and looks for the coordinator.
Other clients are not given it: Java's Admin asks each broker that is named for its groups and
transactions, and fails where one of them is dead.
"""

from collections.abc import Mapping

from ottla.base.ids import BrokerId
from ottla.metadata.image import BrokerImage

# Within this time librdkafka has tried to connect several times (`reconnect.backoff.max.ms`, 10 s).
_NAMED_FOR_MS = 60_000
_LIBRDKAFKA = ("rdkafka", "confluent-kafka")


class Departed:
    """The brokers that earlier images had and the last one lacks."""

    def __init__(self) -> None:
        self._alive: Mapping[BrokerId, BrokerImage] = {}
        # With the monotonic time at which each left.
        self._left: dict[BrokerId, tuple[BrokerImage, int]] = {}

    def on_image(self, alive: Mapping[BrokerId, BrokerImage], now_ms: int) -> None:
        """Compare the live brokers of a new image with those of the last one."""
        self._left = {
            broker_id: (broker, left_ms)
            for broker_id, (broker, left_ms) in self._left.items()
            if broker_id not in alive and now_ms < left_ms + _NAMED_FOR_MS
        }
        for broker_id, broker in self._alive.items():
            if broker_id not in alive:
                self._left[broker_id] = (broker, now_ms)
        self._alive = alive

    def named_to(self, software: str, now_ms: int) -> list[BrokerImage]:
        """The brokers to name besides the live ones; `software` is the client's name."""
        if not self._left or not any(name in software for name in _LIBRDKAFKA):
            return []
        return [
            broker for broker, left_ms in self._left.values() if now_ms < left_ms + _NAMED_FOR_MS
        ]
