"""The store in memory: for tests, in-memory brokers and simulation. Deterministic.

Several clients may share one `MemoryTree`, as brokers share a store; each has watches and a
session of its own. Nothing survives the process. Without faults every call is done at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from ottla.base.clock import Clock, SystemClock
from ottla.coordination.interface.client import StoreClient, StoreSession, Watches
from ottla.coordination.interface.operations import ChangedPaths, apply
from ottla.coordination.interface.store import (
    Node,
    Operation,
    Result,
    StoreError,
    StoreRolledBack,
    StoreUnavailable,
    parent_of,
)
from ottla.coordination.memory.faults import StoreFaults

_MARK_KIND = "memory"


class Client(Protocol):
    """A client that the tree notifies of changes."""

    def on_changes(self, changes: ChangedPaths) -> None: ...


class TreeEntry:
    """A node, its owner and its counters."""

    __slots__ = ("children", "data", "owner", "sequence", "version")

    def __init__(self, data: bytes, owner: int) -> None:
        self.data = data
        self.version = 0
        self.owner = owner
        self.sequence = 0
        # Ordered, so that nothing depends on hashes.
        self.children: dict[str, None] = {}


class MemoryTree:
    """The nodes, the ids of live sessions, and the clients to notify of changes."""

    def __init__(self) -> None:
        self.entries: dict[str, TreeEntry] = {"/": TreeEntry(b"", 0)}
        self.clients: list[Client] = []
        self.last_session_id = 0
        self.living: dict[int, None] = {}
        self.changes_made = 0
        # The actions that undo the running multi so far, newest last.
        self._undo: list[Callable[[], None]] = []

    def commit(self, operations: Sequence[Operation]) -> list[Result]:
        """Apply all operations or none, then notify the clients."""
        self._undo.clear()
        try:
            results, changes = apply(self, operations)
        except StoreError:
            for step in reversed(self._undo):
                step()
            raise
        self._notify(changes)
        return results

    def begin_session(self) -> int:
        """Begin a session and return its id."""
        self.last_session_id += 1
        self.living[self.last_session_id] = None
        return self.last_session_id

    def end_session(self, session_id: int) -> None:
        """Forget a session and delete its ephemeral nodes."""
        if self.living.pop(session_id, self) is self:
            return
        changes = ChangedPaths()
        for path in [p for p, entry in self.entries.items() if entry.owner == session_id]:
            self.remove(path)
            changes.note(path, listed=True)
        self._notify(changes)

    def history(self) -> str:
        return f"{_MARK_KIND}:{self.changes_made}"

    def require_history(self, mark: str) -> None:
        kind, _, number = mark.partition(":")
        if kind != _MARK_KIND or int(number) > self.changes_made:
            raise StoreRolledBack(f"the store is at {self.history()}, this broker has seen {mark}")

    def is_alive(self, session_id: int) -> bool:
        return session_id in self.living

    def version(self, path: str) -> int | None:
        entry = self.entries.get(path)
        return None if entry is None else entry.version

    def insert(self, path: str, data: bytes, owner: int) -> None:
        self.entries[path] = TreeEntry(data, owner)
        self.entries[parent_of(path)].children[path] = None
        self._undo.append(lambda: self._detach(path))

    def update(self, path: str, data: bytes, version: int) -> None:
        entry = self.entries[path]
        old = (entry.data, entry.version)
        entry.data, entry.version = data, version

        def restore() -> None:
            entry.data, entry.version = old

        self._undo.append(restore)

    def remove(self, path: str) -> None:
        entry = self.entries[path]
        self._detach(path)

        def restore() -> None:
            self.entries[path] = entry
            self.entries[parent_of(path)].children[path] = None

        self._undo.append(restore)

    def has_children(self, path: str) -> bool:
        return bool(self.entries[path].children)

    def is_ephemeral(self, path: str) -> bool:
        return self.entries[path].owner != 0

    def next_sequence(self, path: str) -> int:
        entry = self.entries[path]
        number = entry.sequence
        entry.sequence += 1

        def restore() -> None:
            entry.sequence = number

        self._undo.append(restore)
        return number

    def _notify(self, changes: ChangedPaths) -> None:
        self.changes_made += 1
        for client in self.clients:
            client.on_changes(changes)

    def _detach(self, path: str) -> None:
        del self.entries[path]
        del self.entries[parent_of(path)].children[path]


T = TypeVar("T")
# How many heartbeats a client sends in a lease, at least.
_HEARTBEATS_PER_LEASE = 6


class MemorySession(StoreSession):
    """A session that lives until it is closed or made to expire.

    With faults its client must send a heartbeat within the lease, and learns of the session's end
    only when it can be reached again.
    """

    def __init__(
        self,
        tree: MemoryTree,
        session_id: int,
        generation: int,
        lease_ms: int,
        clock: Clock,
        *,
        client: str,
        faults: StoreFaults | None,
    ) -> None:
        super().__init__(generation)
        self.id = session_id
        self._tree = tree
        self._lease_s = lease_ms / 1000
        self._clock = clock
        self._client = client
        self._faults = faults
        self._confirmed_ms = clock.monotonic_ms()
        self._renewed_s = self._loop.time()
        self._abandoned = False
        self._timers: list[asyncio.TimerHandle] = []
        if faults is not None:
            faults.on_return(self.renew)
            self._beat()
            self._watch_over()

    @property
    def confirmed_ms(self) -> int:
        alone = self._faults is None and not self.expired
        return self._clock.monotonic_ms() if alone else self._confirmed_ms

    @property
    def ends_within_ms(self) -> int:
        return round(self._lease_s * 1000)

    async def close(self) -> None:
        if self._faults is not None and not self.expired:
            try:
                await self._faults.exchange(
                    self._client, lambda: self._tree.end_session(self.id), changes=False
                )
            except StoreUnavailable:
                # The session ends with its lease; for its holder it has ended now.
                self._notify_expired()
        self.expire()
        self._notify_expired()

    def expire(self) -> None:
        """End the session, as the store does when its lease runs out."""
        self._tree.end_session(self.id)
        self._stop_timers()
        if self._faults is None:
            self._notify_expired()
        elif not (self.expired or self._abandoned):
            self._faults.notify(self._client, self._notify_expired)

    def abandon(self) -> None:
        """Let the holder's process die: it sends no more heartbeats, and is not notified."""
        self._abandoned = True

    def renew(self) -> None:
        """Restart the lease, after a heartbeat or an outage of the store."""
        self._renewed_s = self._loop.time()

    def confirm(self, sent_ms: int) -> None:
        """Note the store's answer to what the holder sent at `sent_ms` by its own clock."""
        if self._tree.is_alive(self.id):
            self._confirmed_ms = max(self._confirmed_ms, sent_ms)

    def _notify_expired(self) -> None:
        if not self._abandoned:
            self._note_expired()

    def _beat(self) -> None:
        assert self._faults is not None
        if self._abandoned or not self._tree.is_alive(self.id):
            return
        if self._faults.reachable(self._client):
            self.renew()
            self.confirm(self._clock.monotonic_ms())
        self._again(self._lease_s / _HEARTBEATS_PER_LEASE, self._beat)

    def _watch_over(self) -> None:
        """On the store's side, end the session when the lease has run out."""
        assert self._faults is not None
        left_s = self._renewed_s + self._lease_s - self._loop.time()
        if not self._tree.is_alive(self.id):
            return
        if left_s <= 0 and not self._faults.out:
            self.expire()
        else:
            self._again(max(left_s, self._lease_s / _HEARTBEATS_PER_LEASE), self._watch_over)

    def _again(self, delay_s: float, callback: Callable[[], None]) -> None:
        now_s = self._loop.time()
        self._timers = [t for t in self._timers if t.when() > now_s and not t.cancelled()]
        self._timers.append(self._loop.call_later(delay_s, callback))

    def _stop_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()


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
        super().__init__(Watches())
        self._session: MemorySession | None = None

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
