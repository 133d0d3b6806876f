"""Finds brokers that the controller cannot reach, by a separate connection to those that are slow.

A request may take long to carry out, so that a late answer says little. After half of the patience
a connection to the broker is tried; a broker that cannot be connected to for the other half is
silent.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from ottla.base.ids import BrokerId
from ottla.metadata.image import BrokerImage

# Whether a broker can be reached, or answers, within so many seconds.
Reaches = Callable[[BrokerImage, float], Awaitable[bool]]


class Silence:
    """Tracks the brokers that have not answered a request yet."""

    def __init__(
        self, reaches: Reaches, patience_s: float, on_silent: Callable[[BrokerImage], None]
    ) -> None:
        """`on_silent` is called once for each silence that outlasts the patience."""
        self._reaches = reaches
        self._half_s = patience_s / 2
        self._on_silent = on_silent
        self._timers: dict[BrokerId, asyncio.TimerHandle] = {}
        self._asking: dict[BrokerId, asyncio.Task[None]] = {}
        # Brokers reported as silent that have not answered since.
        self._silent: dict[BrokerId, None] = {}

    def begin(self, broker: BrokerImage) -> None:
        """A request is on its way to a broker."""
        if not any(broker.id in held for held in (self._timers, self._asking, self._silent)):
            self._wait(broker)

    def end(self, broker_id: BrokerId) -> None:
        """Stop tracking a broker: it has answered, or nothing is sent to it any more."""
        timer = self._timers.pop(broker_id, None)
        if timer is not None:
            timer.cancel()
        asking = self._asking.pop(broker_id, None)
        if asking is not None:
            asking.cancel()
        self._silent.pop(broker_id, None)

    def stop(self) -> None:
        """Stop tracking all brokers."""
        for broker_id in [*self._timers, *self._asking]:
            self.end(broker_id)

    async def reached(self, brokers: Iterable[BrokerImage]) -> set[BrokerId]:
        """The brokers that can be reached within half of the patience."""
        return await those_of(brokers, self._reaches, self._half_s)

    def _wait(self, broker: BrokerImage) -> None:
        loop = asyncio.get_running_loop()
        self._timers[broker.id] = loop.call_later(self._half_s, self._doubt, broker)

    def _doubt(self, broker: BrokerImage) -> None:
        del self._timers[broker.id]
        self._asking[broker.id] = asyncio.get_running_loop().create_task(self._ask(broker))

    async def _ask(self, broker: BrokerImage) -> None:
        is_there = await self._reaches(broker, self._half_s)
        del self._asking[broker.id]
        if is_there:
            # The broker is slow but reachable: its answer may take as long as it needs.
            self._wait(broker)
        else:
            self._silent[broker.id] = None
            self._on_silent(broker)


async def those_of(
    brokers: Iterable[BrokerImage], reaches: Reaches, within_s: float
) -> set[BrokerId]:
    """The ids of the reachable brokers; all are tried at the same time."""
    tried = list(brokers)
    found = await asyncio.gather(*(reaches(broker, within_s) for broker in tried))
    return {broker.id for broker, is_reached in zip(tried, found, strict=True) if is_reached}
