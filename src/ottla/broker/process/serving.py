"""The serving part: the listeners, and a handler for each API."""

import random
from dataclasses import dataclass

from ottla.base.settings import BrokerSettings
from ottla.broker.fetch.parts import FetchParts
from ottla.broker.fetch.sessions import FetchSessions
from ottla.broker.process.apis import handlers
from ottla.broker.process.parts import Parts
from ottla.broker.produce.parts import ProduceParts, Turns
from ottla.broker.runtime.part import BrokerPart
from ottla.broker.serving.dispatch import Dispatcher
from ottla.broker.serving.listeners import Listeners, Readiness

_SESSION_EVICTION_MS = 120_000


@dataclass(frozen=True, slots=True)
class ServingStatus:
    """Counts connections and requests, both of clients and of other brokers."""

    # Whether clients are served; until then their requests wait.
    is_serving: bool
    # Open connections, by the names of the listeners.
    connections: dict[str, int]
    fetch_sessions: int
    # How many requests blocked the event loop for long since the start, and the longest block.
    stalls: int
    longest_stall_ms: int


class Serving(BrokerPart):
    """Opens the listeners when it starts; requests of clients wait until `begin`."""

    def __init__(self, settings: BrokerSettings, parts: Parts, rng: random.Random) -> None:
        runtime = parts.runtime
        partitions, new_leaders = parts.replication.partitions, parts.metadata.new_leaders
        self._tasks = runtime.tasks
        self.readiness = Readiness()
        slots = settings.integer("max.incremental.fetch.session.cache.slots")
        turns = Turns(runtime.clock)
        produce = ProduceParts(runtime, partitions, new_leaders, turns, parts.usage)
        sessions = FetchSessions(slots, _SESSION_EVICTION_MS, rng)
        self.fetch = FetchParts(settings, runtime, partitions, sessions, new_leaders)
        self._dispatcher = Dispatcher(
            handlers(settings, parts, produce, self.fetch),
            runtime,
            self.readiness,
            parts.quotas,
            produce,
            self.fetch,
            parts.access.gate,
            parts.login.logins,
            parts.audit,
            parts.usage,
        )
        self.listeners = Listeners(
            settings, parts.quotas.connections, self._dispatcher.service, parts.audit
        )

    async def start(self) -> None:
        await self.listeners.start()

    def begin(self) -> None:
        self.readiness.begin()

    async def stop(self) -> None:
        """Close all connections, and cancel the background tasks of requests and of other parts."""
        try:
            await self.listeners.stop()
        finally:
            await self._tasks.cancel()

    def status(self) -> ServingStatus:
        stalls = self._dispatcher.stalls
        return ServingStatus(
            is_serving=self.readiness.is_serving,
            connections={each.name: len(each.connections) for each in self.listeners.open},
            fetch_sessions=len(self.fetch.sessions),
            stalls=stalls.count,
            longest_stall_ms=stalls.longest_ms,
        )
