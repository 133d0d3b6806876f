"""Whether brokers can be told anything: who does not answer is asked apart.

An order may take long to obey, so that waiting for its answer says little. After half of the
patience the broker is asked over a connection of its own whether it is there; who does not answer
that either, for the other half, cannot be reached.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from ottla.base.ids import BrokerId
from ottla.metadata.image import BrokerImage

# Whether a broker answers within so many seconds, over a connection made for the question.
Answers = Callable[[BrokerImage, float], Awaitable[bool]]


class Silence:
    """Follows who has been sent something and has not answered."""

    def __init__(
        self, answers: Answers, patience_s: float, on_silent: Callable[[BrokerImage], None]
    ) -> None:
        """`on_silent` is called once for each silence that outlasts the patience."""
        self._answers = answers
        self._half_s = patience_s / 2
        self._on_silent = on_silent
        self._timers: dict[BrokerId, asyncio.TimerHandle] = {}
        self._asking: dict[BrokerId, asyncio.Task[None]] = {}
        # Said already; until they are heard.
        self._told: dict[BrokerId, None] = {}

    def begin(self, broker: BrokerImage) -> None:
        """Something is on its way to a broker."""
        if not any(broker.id in held for held in (self._timers, self._asking, self._told)):
            self._wait(broker)

    def end(self, broker_id: BrokerId) -> None:
        """The broker was heard, or nothing is sent to it any more."""
        timer = self._timers.pop(broker_id, None)
        if timer is not None:
            timer.cancel()
        asking = self._asking.pop(broker_id, None)
        if asking is not None:
            asking.cancel()
        self._told.pop(broker_id, None)

    def stop(self) -> None:
        """Follow nobody any more."""
        for broker_id in [*self._timers, *self._asking]:
            self.end(broker_id)

    async def answering(self, brokers: Iterable[BrokerImage]) -> set[BrokerId]:
        """Those that answer now; who does not is waited for as long as half of the patience."""
        asked = list(brokers)
        found = await asyncio.gather(*(self._answers(broker, self._half_s) for broker in asked))
        return {broker.id for broker, answers in zip(asked, found, strict=True) if answers}

    def _wait(self, broker: BrokerImage) -> None:
        loop = asyncio.get_running_loop()
        self._timers[broker.id] = loop.call_later(self._half_s, self._doubt, broker)

    def _doubt(self, broker: BrokerImage) -> None:
        del self._timers[broker.id]
        self._asking[broker.id] = asyncio.get_running_loop().create_task(self._ask(broker))

    async def _ask(self, broker: BrokerImage) -> None:
        is_there = await self._answers(broker, self._half_s)
        del self._asking[broker.id]
        if is_there:
            # Slow, and given the time it takes.
            self._wait(broker)
        else:
            self._told[broker.id] = None
            self._on_silent(broker)
