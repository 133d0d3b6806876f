"""Brokers that left recently, still named to clients that fail when a broker vanishes at once.

librdkafka (2.10 and later) takes down its thread for a broker that Metadata does not name any
more, and yet may go on waiting for it: `send_offsets_to_transaction` hangs where the group's
coordinator was that broker (librdkafka #5511), and does not heed its timeout (#5456). As long as
the broker is named, the library notices by itself that it is down, and looks for the coordinator.
Kafka takes seconds to find out that a broker is dead; Ottla knows within milliseconds.
"""

from collections.abc import Mapping

from ottla.base.ids import BrokerId
from ottla.metadata.image import BrokerImage

# By then its clients have noticed. A killed broker has usually been restarted.
_NAMED_FOR_MS = 60_000
_LIBRDKAFKA = ("rdkafka", "confluent-kafka")


class Departed:
    """The brokers of earlier images that the last one lacks."""

    def __init__(self) -> None:
        self._alive: Mapping[BrokerId, BrokerImage] = {}
        # With the time until when they are named, monotonic.
        self._left: dict[BrokerId, tuple[BrokerImage, int]] = {}

    def on_image(self, alive: Mapping[BrokerId, BrokerImage], now_ms: int) -> None:
        """Compare the live brokers of a new image with those of the last one."""
        for broker_id, broker in self._alive.items():
            if broker_id not in alive:
                self._left[broker_id] = (broker, now_ms + _NAMED_FOR_MS)
        self._left = {
            broker_id: left
            for broker_id, left in self._left.items()
            if broker_id not in alive and left[1] > now_ms
        }
        self._alive = alive

    def named_to(self, software: str, now_ms: int) -> list[BrokerImage]:
        """Brokers to name besides the live ones; `software` is the client's name for itself."""
        if not self._left or not any(name in software for name in _LIBRDKAFKA):
            return []
        return [broker for broker, until_ms in self._left.values() if until_ms > now_ms]
