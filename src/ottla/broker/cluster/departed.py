"""Brokers that died a moment ago, still named in answers to Metadata.

Leaders move within milliseconds, but a client may wait for the broker itself. librdkafka (2.10 and
later) takes down its thread for a broker that Metadata does not name any more, and yet may go on
waiting for it: `send_offsets_to_transaction` hangs where the group's coordinator was that broker
(librdkafka #5511), and does not check its timeout (#5456). As long as the broker is named, a client
notices by itself that it is down, and looks for the coordinator. Kafka names a dead broker until
its session ends, so its clients seldom see one vanish. Ottla's own client takes the named brokers
for the live ones, and copes with one that vanishes: to it no dead broker is named.
"""

from collections.abc import Iterator, Mapping

from ottla.base.ids import BrokerId
from ottla.metadata.image import BrokerImage

# Kafka's `broker.session.timeout.ms`: for so long Kafka names a broker that has died.
_NAMED_FOR_MS = 9_000
_OWN_CLIENT = "ottla"


class Departed:
    """The brokers of earlier images that the last one lacks."""

    def __init__(self) -> None:
        self._alive: Mapping[BrokerId, BrokerImage] = {}
        # With the time until when they are named, monotonic.
        self._left: dict[BrokerId, tuple[BrokerImage, int]] = {}

    def on_image(self, alive: Mapping[BrokerId, BrokerImage], now_ms: int) -> None:
        """Compare the live brokers of a new image with those of the last one."""
        self._left = {
            broker_id: left
            for broker_id, left in self._still_named(now_ms)
            if broker_id not in alive
        }
        for broker_id, broker in self._alive.items():
            if broker_id not in alive:
                self._left[broker_id] = (broker, now_ms + _NAMED_FOR_MS)
        self._alive = alive

    def named_to(self, software: str, now_ms: int) -> list[BrokerImage]:
        """Brokers to name besides the live ones; `software` is the client's name for itself."""
        if software.startswith(_OWN_CLIENT):
            return []
        return [broker for _, (broker, _) in self._still_named(now_ms)]

    def _still_named(self, now_ms: int) -> Iterator[tuple[BrokerId, tuple[BrokerImage, int]]]:
        return ((each, left) for each, left in self._left.items() if left[1] > now_ms)
