"""The nodes of a store in memory, and its open sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ottla.coordination.interface.operations import ChangedPaths, apply
from ottla.coordination.interface.store import (
    Operation,
    Result,
    StoreError,
    StoreRolledBack,
    parent_of,
)

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
