"""The store in a SQLite file: embedded, durable, shared by the brokers of one machine.

Write-ahead log with `synchronous=FULL`: what was answered survives a power cut. All calls run on
one thread of this store's own, in the order they were made, so that the event loop never waits.
Other processes' changes are noticed by asking `PRAGMA data_version` from time to time.
"""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from uuid import uuid4

from ottla.coordination.operations import Changes, apply
from ottla.coordination.schema import SCHEMA, SqlNodes
from ottla.coordination.session_lock import SessionLock
from ottla.coordination.store import (
    Create,
    Node,
    NodeExists,
    Operation,
    Result,
    StoreError,
    StoreUnavailable,
    Watch,
)
from ottla.coordination.watches import Watches

T = TypeVar("T")

# How long a call waits for another process's write before it gives up.
_BUSY_TIMEOUT_MS = 5_000


class SqliteSession:
    """A session that lives until it is closed, or its process dies."""

    def __init__(self, store: "SqliteStore", session_id: int, generation: int) -> None:
        self._store = store
        self.id = session_id
        self.generation = generation
        self.expired = False
        self._callbacks: list[Callable[[], None]] = []

    def on_expired(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    async def close(self) -> None:
        if self.expired:
            return
        self.expired = True
        await self._store.end_session(self.id)
        for callback in self._callbacks:
            asyncio.get_running_loop().call_soon(callback)


class SqliteStore:
    """One client of the file; implements `Store`. Make it with `open`."""

    def __init__(self, path: str, poll_ms: int) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ottla-store")
        self._watches = Watches()
        self._session: SqliteSession | None = None
        self._lock: SessionLock | None = None
        self._generation = 0
        self._poll_ms = poll_ms
        self._poller: asyncio.Task[None] | None = None
        self._data_version = 0
        self._closed = False

    @classmethod
    async def open(cls, path: str, *, poll_ms: int = 0) -> "SqliteStore":
        """Open the file, and make it where it lacks; its folder must exist.

        `poll_ms` is how often to look for changes by other processes; 0 where there are none.
        Raises StoreUnavailable where it cannot be opened.
        """
        store = cls(path, poll_ms)
        try:
            await store._call(store._connect)
        except StoreError:
            store._thread.shutdown(wait=False)
            raise
        if poll_ms:
            store._poller = asyncio.get_running_loop().create_task(store._poll_for_ever())
        return store

    async def get(self, path: str) -> Node | None:
        return await self._call(lambda: self._nodes.get(path))

    async def children(self, path: str) -> list[str]:
        return await self._call(lambda: self._nodes.children(path))

    async def subtree(self, path: str) -> dict[str, Node]:
        return await self._call(lambda: self._nodes.subtree(path))

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        results, changes = await self._call(
            lambda: self._transact(lambda: apply(self._nodes, operations))
        )
        self._watches.fire(changes, asyncio.get_running_loop())
        return results

    async def ensure(self, path: str) -> None:
        parts = path.split("/")
        for length in range(2, len(parts) + 1):
            ancestor = "/".join(parts[:length])
            if await self.get(ancestor) is not None:
                continue
            try:
                await self.multi([Create(ancestor)])
            except NodeExists:
                continue

    def watch_data(self, path: str, callback: Callable[[], None]) -> Watch:
        return self._watches.add_data(path, callback)

    def watch_children(self, path: str, callback: Callable[[], None]) -> Watch:
        return self._watches.add_children(path, callback)

    async def open_session(self, lease_ms: int) -> SqliteSession:
        assert self._session is None or self._session.expired, "one session at a time"
        session_id = await self._call(lambda: self._begin_session(lease_ms))
        self._generation += 1
        self._session = SqliteSession(self, session_id, self._generation)
        return self._session

    async def close(self) -> None:
        if self._closed:
            return
        if self._poller is not None:
            self._poller.cancel()
        if self._session is not None:
            await self._session.close()
        await self._call(self._connection.close)
        self._closed = True
        self._thread.shutdown(wait=False)

    async def end_session(self, session_id: int) -> None:
        """Delete a session of this client's and what it owns."""
        changes = await self._call(lambda: self._transact(lambda: self._forget(session_id)))
        if self._lock is not None:
            self._lock.release()
            self._lock = None
        self._watches.fire(changes, asyncio.get_running_loop())

    async def poll(self) -> None:
        """Have all watchers look again where another process changed anything."""
        if await self._call(self._changed_elsewhere):
            everything = Changes(set(self._watches.data_paths), set(self._watches.children_paths))
            self._watches.fire(everything, asyncio.get_running_loop())

    async def _poll_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._poll_ms / 1000)
            try:
                await self.poll()
            except StoreUnavailable:
                # The next round asks again; whoever calls the store learns of it himself.
                continue

    async def _call(self, function: Callable[[], T]) -> T:
        """Run on the store's thread. SQLite's errors are raised as StoreUnavailable."""
        if self._closed:
            raise StoreUnavailable(f"the store {self._path} was closed")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, function)
        except (sqlite3.Error, OSError) as error:
            raise StoreUnavailable(
                f"the store {self._path} did not answer ({error}); look at its disk, and whether "
                "another program holds the file"
            ) from error

    # What follows runs on the store's thread.

    def _connect(self) -> None:
        connection = sqlite3.connect(
            self._path,
            timeout=_BUSY_TIMEOUT_MS / 1000,
            isolation_level=None,
            check_same_thread=False,
        )
        self._connection = connection
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.executescript(SCHEMA)
        except sqlite3.Error:
            connection.close()
            raise
        self._nodes = SqlNodes(connection)
        self._data_version = self._read_data_version()

    def _transact(self, change: Callable[[], T]) -> T:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            result = change()
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        return result

    def _begin_session(self, lease_ms: int) -> int:
        """Take a lock, bury dead sessions, and enter the new one."""
        lock_file = f"{self._path}.session-{uuid4().hex}"
        self._lock = SessionLock.take(lock_file)
        assert self._lock is not None, "nobody else knows this name"

        def enter() -> int:
            rows = self._connection.execute("SELECT id, lock_file FROM sessions").fetchall()
            for session_id, name in rows:
                self._bury(session_id, os.path.join(os.path.dirname(self._path), name))
            cursor = self._connection.execute(
                "INSERT INTO sessions (lock_file, lease_ms, boot_id, renewed_monotonic_ms)"
                " VALUES (?, ?, '', 0)",
                (os.path.basename(lock_file), lease_ms),
            )
            assert cursor.lastrowid is not None
            return cursor.lastrowid

        return self._transact(enter)

    def _bury(self, session_id: int, lock_file: str) -> None:
        """Delete a session whose lock nobody holds any more."""
        lock = SessionLock.take(lock_file)
        if lock is not None:
            self._forget(session_id)
            lock.release()

    def _forget(self, session_id: int) -> Changes:
        changes = Changes()
        for path in self._nodes.owned(session_id):
            self._nodes.remove(path)
            changes.note(path, listed=True)
        self._connection.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
        return changes

    def _read_data_version(self) -> int:
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def _changed_elsewhere(self) -> bool:
        before, self._data_version = self._data_version, self._read_data_version()
        return before != self._data_version
