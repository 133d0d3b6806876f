"""A broker's client of the simulated store; it receives answers in the broker's process."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ottla.base.clock import Clock
from ottla.coordination.interface.errors import StoreError
from ottla.coordination.interface.operations import ChangedPaths
from ottla.coordination.memory.faults import StoreFaults
from ottla.coordination.memory.memory import MemorySession, MemoryStore, MemoryTree
from ottla.testing.simulation.network.link import KERNEL
from ottla.testing.simulation.virtual.process import Process

# The time from a process's death until the store ends its session. It is short, as if the kernel
# released a lock of the process at its death.
_DEATH_IS_SEEN_S = 0.001
# The chance that a request arrives at the store after its process died, and its greatest delay.
_STILL_ARRIVES = 0.5
_ARRIVES_S = 0.002

T = TypeVar("T")


class _Request(Generic[T]):
    """A change that was sent to the store and may not have arrived yet."""

    def __init__(self, action: Callable[[], T]) -> None:
        self._action = action
        self.has_arrived = False

    def arrive(self) -> T:
        """Make the change; return the result to the sender."""
        self.has_arrived = True
        return self._action()

    def arrive_late(self) -> None:
        """Make the change for a sender that has died; ignore the result."""
        with contextlib.suppress(StoreError):
            self.arrive()


class SimulatedSession(MemorySession):
    """A session whose lease is kept by the store; its owner's process is notified of the end."""

    process: Process

    def on_expired(self, callback: Callable[[], None]) -> None:
        def notify() -> None:
            self._loop.call_soon(callback, context=self.process.context)

        super().on_expired(notify)


class SimulatedStore(MemoryStore):
    """The client of one process for the world's store."""

    def __init__(
        self, tree: MemoryTree, process: Process, faults: StoreFaults, clock: Clock
    ) -> None:
        super().__init__(tree, name=process.host, faults=faults, clock=clock)
        self._process = process
        self._line_faults = faults
        # Changes that were sent and have not been answered.
        self._requests: dict[_Request[Any], None] = {}
        process.on_death(self._on_death)

    async def open_session(self, lease_ms: int) -> MemorySession:
        assert lease_ms > 0
        assert self._session is None or self._session.expired, "one session at a time"
        session_id = await self._ask(self._tree.begin_session)
        self._generation += 1
        self._session = KERNEL.copy().run(self._make_session, session_id, lease_ms)
        return self._session

    async def _ask(self, action: Callable[[], T], *, changes: bool = False) -> T:
        if not changes:
            return await super()._ask(action)
        request = _Request(action)
        self._requests[request] = None
        try:
            return await super()._ask(request.arrive, changes=True)
        finally:
            self._requests.pop(request, None)

    def _on_death(self) -> None:
        """Handle the death of the process: requests on their way may still arrive at the store.

        They may arrive before or after the session ends. No client is notified.
        """
        chance = self._process.chance
        for request in self._requests:
            reachable = self._line_faults.reachable(self._name)
            if reachable and not request.has_arrived and chance.random() < _STILL_ARRIVES:
                loop = asyncio.get_running_loop()
                loop.call_later(chance.random() * _ARRIVES_S, request.arrive_late, context=KERNEL)
        self._requests.clear()
        self.abandon()

    def end_session_soon(self) -> None:
        """Let the store end the session soon, as if a kernel lock showed that the process died."""
        if self._session is not None:
            loop = asyncio.get_running_loop()
            loop.call_later(_DEATH_IS_SEEN_S, self._session.expire, context=KERNEL)

    def on_changes(self, changes: ChangedPaths) -> None:
        if self._watches.concern(changes):
            KERNEL.copy().run(self._line_faults.notify, self._name, lambda: self._pass_on(changes))

    def _pass_on(self, changes: ChangedPaths) -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(self._on_changes, changes, context=self._process.context)

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
