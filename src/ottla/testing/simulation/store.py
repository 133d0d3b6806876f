"""A broker's way to the store of its world: what it is told comes in its own process."""

import asyncio
from collections.abc import Callable

from ottla.base.clock import Clock
from ottla.coordination.faults import StoreFaults
from ottla.coordination.memory import MemoryStore
from ottla.coordination.memory_session import MemorySession
from ottla.coordination.memory_tree import MemoryTree
from ottla.coordination.operations import Changes
from ottla.testing.simulation.link import KERNEL
from ottla.testing.simulation.process import Process

# After so long a kernel's lock tells the others of a death.
_DEATH_IS_SEEN_S = 0.001


class SimulatedSession(MemorySession):
    """A session whose lease runs in the store; its holder hears of the end in its process."""

    process: Process

    def on_expired(self, callback: Callable[[], None]) -> None:
        def tell() -> None:
            self._loop.call_soon(callback, context=self.process.context)

        super().on_expired(tell)


class SimulatedStore(MemoryStore):
    """One process's client of the world's tree."""

    def __init__(
        self, tree: MemoryTree, process: Process, faults: StoreFaults, clock: Clock
    ) -> None:
        super().__init__(tree, name=process.host, faults=faults, clock=clock)
        self._process = process
        self._line_faults = faults
        process.on_death(self.abandon)

    async def open_session(self, lease_ms: int) -> MemorySession:
        assert lease_ms > 0
        assert self._session is None or self._session.expired, "one session at a time"
        session_id = await self._ask(self._tree.begin_session)
        self._generation += 1
        self._session = KERNEL.copy().run(self._make_session, session_id, lease_ms)
        return self._session

    def end_session_soon(self) -> None:
        """The store sees at once that the process has died (a lock of the kernel's)."""
        if self._session is not None:
            loop = asyncio.get_running_loop()
            loop.call_later(_DEATH_IS_SEEN_S, self._session.expire, context=KERNEL)

    def on_changes(self, changes: Changes) -> None:
        if self._watches.concern(changes):
            KERNEL.copy().run(self._line_faults.tell, self._name, lambda: self._pass_on(changes))

    def _pass_on(self, changes: Changes) -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(self._hear_of, changes, context=self._process.context)

    def _make_session(self, session_id: int, lease_ms: int) -> SimulatedSession:
        session = SimulatedSession(
            self._tree,
            session_id,
            self._generation,
            lease_ms,
            self._clock,
            client=self._name,
            faults=self._line_faults,
        )
        session.process = self._process
        return session
