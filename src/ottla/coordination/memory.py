"""The store in memory: for tests, in-memory brokers and simulation. Deterministic.

Several clients may share one `MemoryTree`, as brokers share a store; each has watches and a
session of its own. Nothing survives the process.
"""

import asyncio
from collections.abc import Callable, Sequence

from ottla.coordination.operations import Changes, apply
from ottla.coordination.store import (
    Create,
    Node,
    NodeExists,
    Operation,
    Result,
    StoreError,
    Watch,
    parent_of,
)
from ottla.coordination.watches import Watches


class _Entry:
    """A node with what its readers do not see."""

    __slots__ = ("children", "data", "owner", "sequence", "version")

    def __init__(self, data: bytes, owner: int) -> None:
        self.data = data
        self.version = 0
        self.owner = owner
        self.sequence = 0
        self.children: set[str] = set()


class MemoryTree:
    """The nodes, and the clients to tell of changes."""

    def __init__(self) -> None:
        self.entries: dict[str, _Entry] = {"/": _Entry(b"", 0)}
        self.clients: list[MemoryStore] = []
        self.last_session_id = 0
        # How to take back what the running multi has done so far, newest last.
        self._undo: list[Callable[[], None]] = []

    def commit(self, operations: Sequence[Operation]) -> list[Result]:
        """Apply all or nothing, then tell the clients."""
        self._undo.clear()
        try:
            results, changes = apply(self, operations)
        except StoreError:
            for step in reversed(self._undo):
                step()
            raise
        self.tell(changes)
        return results

    def tell(self, changes: Changes) -> None:
        for client in self.clients:
            client.on_changes(changes)

    def end_session(self, session_id: int) -> None:
        """Delete the ephemeral nodes of a session."""
        changes = Changes()
        for path in [p for p, entry in self.entries.items() if entry.owner == session_id]:
            self.remove(path)
            changes.note(path, listed=True)
        self.tell(changes)

    def version(self, path: str) -> int | None:
        entry = self.entries.get(path)
        return None if entry is None else entry.version

    def insert(self, path: str, data: bytes, owner: int) -> None:
        self.entries[path] = _Entry(data, owner)
        self.entries[parent_of(path)].children.add(path)
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
            self.entries[parent_of(path)].children.add(path)

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

    def _detach(self, path: str) -> None:
        del self.entries[path]
        self.entries[parent_of(path)].children.discard(path)


class MemorySession:
    """A session that lives until it is closed or made to expire."""

    def __init__(self, tree: MemoryTree, session_id: int, generation: int) -> None:
        self._tree = tree
        self.id = session_id
        self.generation = generation
        self.expired = False
        self._callbacks: list[Callable[[], None]] = []

    def on_expired(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    async def close(self) -> None:
        self.expire()

    def expire(self) -> None:
        """End the session, as the store does when its lease runs out."""
        if self.expired:
            return
        self.expired = True
        self._tree.end_session(self.id)
        for callback in self._callbacks:
            asyncio.get_running_loop().call_soon(callback)


class MemoryStore:
    """One client of a `MemoryTree`; implements `Store`."""

    def __init__(self, tree: MemoryTree | None = None) -> None:
        self._tree = tree if tree is not None else MemoryTree()
        self._tree.clients.append(self)
        self._watches = Watches()
        self._session: MemorySession | None = None
        self._generation = 0

    async def get(self, path: str) -> Node | None:
        entry = self._tree.entries.get(path)
        return None if entry is None else Node(entry.data, entry.version)

    async def children(self, path: str) -> list[str]:
        entry = self._tree.entries.get(path)
        paths = entry.children if entry is not None else ()
        return sorted(child.rpartition("/")[2] for child in paths)

    async def subtree(self, path: str) -> dict[str, Node]:
        prefix = path if path == "/" else path + "/"
        return {
            name: Node(entry.data, entry.version)
            for name, entry in sorted(self._tree.entries.items())
            if name == path or (name.startswith(prefix) and name != "/")
        }

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        return self._tree.commit(operations)

    async def ensure(self, path: str) -> None:
        parts = path.split("/")
        for length in range(2, len(parts) + 1):
            try:
                self._tree.commit([Create("/".join(parts[:length]))])
            except NodeExists:
                continue

    def watch_data(self, path: str, callback: Callable[[], None]) -> Watch:
        return self._watches.add_data(path, callback)

    def watch_children(self, path: str, callback: Callable[[], None]) -> Watch:
        return self._watches.add_children(path, callback)

    async def open_session(self, lease_ms: int) -> MemorySession:
        assert lease_ms > 0
        assert self._session is None or self._session.expired, "one session at a time"
        self._tree.last_session_id += 1
        self._generation += 1
        self._session = MemorySession(self._tree, self._tree.last_session_id, self._generation)
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
        if self in self._tree.clients:
            self._tree.clients.remove(self)

    def on_changes(self, changes: Changes) -> None:
        """The tree tells of a change, this client's own ones too."""
        self._watches.fire(changes, asyncio.get_running_loop())
