"""The store in memory: for tests, in-memory brokers and simulation. Deterministic.

Several clients may share one `MemoryTree`, as brokers share a store; each has watches and a
session of its own. Nothing survives the process. Without faults every call is done at once.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from ottla.base.clock import Clock, SystemClock
from ottla.coordination.interface.client import StoreClient
from ottla.coordination.interface.operations import ChangedPaths
from ottla.coordination.interface.store import (
    Node,
    Operation,
    Result,
)
from ottla.coordination.interface.watches import Watches
from ottla.coordination.memory.faults import StoreFaults
from ottla.coordination.memory.session import MemorySession
from ottla.coordination.memory.tree import MemoryTree

__all__ = ["MemorySession", "MemoryStore", "MemoryTree"]

T = TypeVar("T")


class MemoryStore(StoreClient):
    """One client of a `MemoryTree`; implements `Store`.

    `faults` is shared by all clients of a tree and distinguishes them by `name`. `clock` is the
    client's own, for `Session.confirmed_ms`.
    """

    def __init__(
        self,
        tree: MemoryTree | None = None,
        *,
        name: str = "",
        faults: StoreFaults | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._tree = tree if tree is not None else MemoryTree()
        self._tree.clients.append(self)
        self._name = name
        self._faults = faults
        self._clock: Clock = clock or SystemClock()
        self._watches = Watches()
        super().__init__(self._watches)
        self._session: MemorySession | None = None
        self._generation = 0

    async def get(self, path: str) -> Node | None:
        return await self._ask(lambda: self._node(path))

    async def children(self, path: str) -> list[str]:
        return await self._ask(lambda: self._children(path))

    async def subtree(self, path: str) -> dict[str, Node]:
        return await self._ask(lambda: self._subtree(path))

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        return await self._ask(lambda: self._tree.commit(operations), changes=True)

    async def open_session(self, lease_ms: int) -> MemorySession:
        assert lease_ms > 0
        assert self._session is None or self._session.expired, "one session at a time"
        session_id = await self._ask(self._tree.begin_session)
        self._generation += 1
        self._session = MemorySession(
            self._tree,
            session_id,
            self._generation,
            lease_ms,
            self._clock,
            client=self._name,
            faults=self._faults,
        )
        return self._session

    async def history(self) -> str:
        return await self._ask(self._tree.history)

    async def require_history(self, mark: str) -> None:
        await self._ask(lambda: self._tree.require_history(mark))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
        self._leave()

    def abandon(self) -> None:
        """Let the client's process die: its session ends with its lease."""
        if self._session is not None:
            self._session.abandon()
        self._leave()

    def on_changes(self, changes: ChangedPaths) -> None:
        """Call the watches that a change of the tree concerns, this client's own changes too."""
        if self._faults is None:
            self._watches.fire(changes, asyncio.get_running_loop())
        elif self._watches.concern(changes):
            self._faults.notify(self._name, lambda: self._on_changes(changes))

    def _on_changes(self, changes: ChangedPaths) -> None:
        if self in self._tree.clients:
            self._watches.fire(changes, asyncio.get_running_loop())

    def _leave(self) -> None:
        if self in self._tree.clients:
            self._tree.clients.remove(self)

    async def _ask(self, action: Callable[[], T], *, changes: bool = False) -> T:
        """Run `action` on the tree: at once, or through the faults."""
        if self._faults is None:
            return action()
        sent_ms = self._clock.monotonic_ms()
        session = self._session

        def arrive() -> T:
            if session is not None:
                session.renew()
            return action()

        answer = await self._faults.exchange(self._name, arrive, changes=changes)
        if session is not None:
            session.confirm(sent_ms)
        return answer

    def _node(self, path: str) -> Node | None:
        entry = self._tree.entries.get(path)
        return None if entry is None else Node(entry.data, entry.version, entry.owner)

    def _children(self, path: str) -> list[str]:
        entry = self._tree.entries.get(path)
        paths = entry.children if entry is not None else ()
        return sorted(child.rpartition("/")[2] for child in paths)

    def _subtree(self, path: str) -> dict[str, Node]:
        prefix = path if path == "/" else path + "/"
        return {
            name: Node(entry.data, entry.version, entry.owner)
            for name, entry in sorted(self._tree.entries.items())
            if name == path or (name.startswith(prefix) and name != "/")
        }
