"""The store in a SQLite file: embedded, durable, shared by the brokers of one machine.

All calls run on one thread of this store's own, in the order they were made, so that the event loop
never waits. A `Bell` signals other processes' changes, the kernel's lock on a session file
(`peers`) the death of a process, and the lease (`session`) a process that is paused. The folder
must be on a disk of this machine.
"""

import asyncio
import errno
import logging
import os
import sqlite3
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ottla.base.errors import ErrorCode
from ottla.base.private_files import whose
from ottla.coordination.interface.client import StoreClient, Watches
from ottla.coordination.interface.errors import StoreDamaged, StoreError, StoreUnavailable
from ottla.coordination.interface.operations import ChangedPaths
from ottla.coordination.interface.store import Node, Operation, Result
from ottla.coordination.sqlite.file import Bell, SessionRow, SqliteFile
from ottla.coordination.sqlite.peers import FilePeers, Peer
from ottla.coordination.sqlite.session import CLOCK, SqliteSession, bury_the_dead

_log = logging.getLogger(__name__)

T = TypeVar("T")

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# The interval between checks without a ring. Without a bell there are no other checks.
_LOOK_S = 0.25
_LOOK_WITHOUT_BELL_S = 0.01


class SqliteStore(StoreClient):
    """One client of the file; implements `Store`. Create it with `open`."""

    _file: SqliteFile

    def __init__(self, path: str) -> None:
        self._path = path
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ottla-store")
        super().__init__(Watches())
        self._peers = FilePeers(os.path.dirname(path), self._loop, self._on_end_of_peer)
        self._session: SqliteSession | None = None
        self._bell: Bell | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: dict[asyncio.Task[None], None] = {}
        # Sessions of others that are being removed.
        self._ending: dict[int, None] = {}
        self._looking = self._look_again = False
        self._closed = False

    @classmethod
    async def open(cls, path: str, sensitive: Sequence[str] = ()) -> "SqliteStore":
        """Open the file, and create it if missing; its folder must exist.

        Data that is replaced or removed below `sensitive` paths is wiped out of the file. Raises
        StoreUnavailable if the file cannot be opened, StoreDamaged if it is no store.
        """
        store = cls(path)
        try:
            store._file = await store._ask(lambda: SqliteFile(path, sensitive))
        except StoreError:
            store._thread.shutdown(wait=False)
            raise
        store._listen()
        return store

    async def get(self, path: str) -> Node | None:
        return await self._ask(lambda: self._file.nodes.get(path))

    async def children(self, path: str) -> list[str]:
        return await self._ask(lambda: self._file.nodes.children(path))

    async def subtree(self, path: str) -> dict[str, Node]:
        return await self._ask(lambda: self._file.nodes.subtree(path))

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        results, changes = await self._ask(lambda: self._file.multi(operations))
        self._watches.fire(changes, self._loop)
        return results

    async def open_session(self, lease_ms: int) -> SqliteSession:
        assert self._session is None or self._session.expired, "one session at a time"
        changes = await self._ask(lambda: bury_the_dead(self._file))
        self._watches.fire(changes, self._loop)
        self._generation += 1
        session = SqliteSession(
            self._file,
            lease_ms,
            self._generation,
            ask=self._ask,
            peers=lambda: self._peers.living,
            on_silent=self._on_silent_peer,
            on_changes=lambda changes: self._watches.fire(changes, self._loop),
        )
        await session.begin()
        self._session = session
        self._look_soon()
        return session

    async def history(self) -> str:
        return await self._ask(self._file.history)

    async def require_history(self, mark: str) -> None:
        await self._ask(lambda: self._file.require_history(mark))

    async def close(self) -> None:
        if self._closed:
            return
        try:
            if self._session is not None:
                await self._session.close()
        finally:
            await self._close_file()

    async def _close_file(self) -> None:
        self._peers.close()
        for task in self._tasks:
            task.cancel()
        if self._timer is not None:
            self._timer.cancel()
        if self._bell is not None:
            self._loop.remove_reader(self._bell.descriptor)
            self._bell.close()
            self._bell = None
        try:
            await self._ask(self._file.close, always=True)
        finally:
            self._closed = True
            # Work already requested is still done.
            self._thread.shutdown(wait=False)

    async def _ask(self, function: Callable[[], T], *, always: bool = False) -> T:
        """Run a function on the store's thread; see `session.Ask`.

        SQLite's errors are raised as ours. If the caller is cancelled, a function that has not
        begun is dropped, unless `always` is given.
        """
        if self._closed:
            raise StoreUnavailable(f"the store {self._path} was closed")
        try:
            answer = self._loop.run_in_executor(self._thread, function)
            return await (asyncio.shield(answer) if always else answer)
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE:
                raise StoreDamaged(
                    f"the store {self._path} is damaged, or no store ({error}): put back a copy of"
                    " it"
                ) from error
            raise self._unavailable(error) from error
        except OSError as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> StoreUnavailable:
        if isinstance(error, PermissionError):
            return StoreUnavailable(
                f"the store {self._path} cannot be opened: {error.strerror}{whose(self._path)}; run"
                " the broker as the owner, or `chown -R` the folder to the user that runs it"
            )
        if _is_full(error):
            return StoreUnavailable(
                f"the disk of the store {self._path} is full; free space on it, perhaps what"
                " another program wrote",
                ErrorCode.KAFKA_STORAGE_ERROR,
            )
        return StoreUnavailable(
            f"the store {self._path} did not answer ({error}); look at its disk, and whether "
            "another program holds the file"
        )

    def _listen(self) -> None:
        self._bell = Bell.listen(self._path)
        if self._bell is not None:
            self._loop.add_reader(self._bell.descriptor, self._on_ring)
        self._look_later()

    def _on_ring(self) -> None:
        assert self._bell is not None
        self._bell.clear()
        self._look_soon()

    def _look_later(self) -> None:
        delay_s = _LOOK_S if self._bell is not None else _LOOK_WITHOUT_BELL_S
        self._timer = self._loop.call_later(delay_s, self._look_unasked)

    def _look_unasked(self) -> None:
        self._look_soon()
        self._look_later()

    def _look_soon(self) -> None:
        """Check for changes of others, once more if a check is running."""
        if self._looking:
            self._look_again = True
        else:
            self._looking = True
            self._spawn(self._look())

    async def _look(self) -> None:
        try:
            self._look_again = True
            while self._look_again:
                self._look_again = False
                await self._look_once()
        except StoreError as error:
            # The next round asks again; callers of the store get the error themselves.
            _log.warning("%s", error.message)
        finally:
            self._looking = False

    async def _look_once(self) -> None:
        changes, rows = await self._ask(self._read_changes)
        if changes is None:
            self._watches.fire_all(self._loop)
        else:
            self._watches.fire(changes, self._loop)
        if self._session is None or self._session.expired:
            return
        if all(row.id != self._session.id for row in rows):
            await self._session.end()
        else:
            self._peers.update(rows, self._session.id)

    def _read_changes(self) -> tuple[ChangedPaths | None, list[SessionRow]]:
        self._file.require_same_file()
        return self._file.changes_elsewhere(), self._file.sessions()

    def _on_end_of_peer(self, row: SessionRow) -> None:
        self._end_soon(row, "its process has ended", lambda: True)

    def _on_silent_peer(self, peer: Peer) -> None:
        """End a silent peer's session. Called on the lease's thread."""
        self._loop.call_soon_threadsafe(self._end_silent, peer)

    def _end_silent(self, peer: Peer) -> None:
        why = f"no life was seen of it for {peer.row.lease_ms} ms"
        self._end_soon(peer.row, why, lambda: peer.is_silent(CLOCK.monotonic_ms()))

    def _end_soon(self, row: SessionRow, why: str, still_true: Callable[[], bool]) -> None:
        if not self._closed and row.id not in self._ending:
            self._ending[row.id] = None
            _log.info("session %d of the store ends: %s", row.id, why)
            self._spawn(self._end(row.id, still_true))

    async def _end(self, session_id: int, still_true: Callable[[], bool]) -> None:
        """Remove another client's session; retry until the file answers."""
        try:
            while True:
                try:
                    changes = await self._ask(
                        lambda: self._file.end_session(session_id, still_true)
                    )
                except StoreUnavailable as error:
                    _log.warning("%s", error.message)
                    await asyncio.sleep(_LOOK_S)
                    continue
                break
        finally:
            del self._ending[session_id]
        self._watches.fire(changes, self._loop)
        self._look_soon()

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)


def _is_full(error: Exception) -> bool:
    """Whether a write failed for lack of space."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOSPC
    # For the write-ahead log, SQLite reports only that writing failed.
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF == sqlite3.SQLITE_FULL
