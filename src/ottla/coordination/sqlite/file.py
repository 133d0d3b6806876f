"""The SQLite file of a store: transactions, changes, session rows. Runs on one thread.

Write-ahead log with `synchronous=FULL`: what was committed survives a power cut.
"""

import ctypes
import json
import logging
import os
import secrets
import sqlite3
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ottla.base import system
from ottla.base.private_files import FILE_MODE, narrow
from ottla.coordination.interface.errors import StoreDamaged, StoreRolledBack
from ottla.coordination.interface.operations import ChangedPaths, apply
from ottla.coordination.interface.store import Delete, Node, Operation, Result, Set, parent_of

_log = logging.getLogger(__name__)

T = TypeVar("T")

# How long a call waits for another process's write.
_BUSY_TIMEOUT_S = 5.0
# How long a wipe of old data waits for other processes before it is postponed.
_WIPE_TIMEOUT_MS = 50
# Changes kept for clients that poll rarely, and for history marks.
_CHANGES_KEPT = 10_000
_MARK_KIND = "sqlite"
# Pages of 4 KiB in the write-ahead log before they are moved to the file. The log stays small
# compared with the reserve of a small disk; SQLite's default is 1000.
_LOG_PAGES = 256


class SessionRow(NamedTuple):
    """A session's row. `lock_file` is a name in the folder of the SQLite file."""

    id: int
    lock_file: str
    lease_ms: int
    boot_id: str


class SqliteFile:
    """One connection. Raises sqlite3.Error and OSError if the file cannot be used."""

    def __init__(self, path: str, sensitive: Sequence[str] = ()) -> None:
        """Open the file, and create it if missing; its folder must exist.

        Data that is replaced or removed below `sensitive` paths does not stay in the write-ahead
        log. Raises StoreDamaged if the file is no store, or contradicts itself.
        """
        self.path = path
        # Only its owner may read it, because it may hold users' credentials. The log files inherit
        # the mode.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | system.OPEN_FLAGS, FILE_MODE))
        for file in (path, f"{path}-wal", f"{path}-shm"):
            _make_private(file)
        self._connection = sqlite3.connect(
            path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        self.nodes = SqlNodes(self._connection)
        # The id of the last change that was returned by `changes_elsewhere` or made here.
        self._seen_id = 0
        # The id of the change that the running transaction has made; 0 if it has made none.
        self._noted_id = 0
        self._data_version = 0
        self._sensitive = tuple(f"{each}/" for each in sensitive)
        # Whether old data may still be in the write-ahead log.
        self._wipe_due = False
        found = os.stat(path)
        self._identity = (found.st_dev, found.st_ino)
        try:
            self._set_up()
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def multi(self, operations: Sequence[Operation]) -> tuple[list[Result], ChangedPaths]:
        """Apply all operations or none; return their results and the changed paths."""
        done = self.transact(lambda: self._apply(operations))
        if any(
            isinstance(each, Set | Delete) and each.path.startswith(self._sensitive)
            for each in operations
        ):
            self._wipe_due = True
            self._wipe()
        return done

    def _wipe(self) -> None:
        """Move the write-ahead log's content to the file, and truncate the log.

        Another process that reads or writes may prevent it; the next check for changes retries it.
        """
        self._connection.execute(f"PRAGMA busy_timeout={_WIPE_TIMEOUT_MS}")
        try:
            busy, *_ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._wipe_due = bool(busy)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
        finally:
            self._connection.execute(f"PRAGMA busy_timeout={round(_BUSY_TIMEOUT_S * 1000)}")

    def transact(self, change: Callable[[], T]) -> T:
        """Run `change` in a transaction that is durable afterwards, or roll it back."""
        self._noted_id = 0
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            result = change()
            self.require_same_file()
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        if self._noted_id:
            if self._noted_id == self._seen_id + 1:
                self._seen_id = self._noted_id
            ring(self.path)
        return result

    def require_same_file(self) -> None:
        """Raise StoreDamaged if the file has been replaced by another one."""
        found = os.stat(self.path)
        if (found.st_dev, found.st_ino) != self._identity:
            raise StoreDamaged(
                f"the store {self.path} was replaced while it was in use: stop all brokers that use"
                " it, then start them again"
            )

    def changes_elsewhere(self) -> ChangedPaths | None:
        """The changes of other connections since the last call; None if they are unknown.

        Changes of this connection may be among them.
        """
        if self._wipe_due:
            self._wipe()
        before, self._data_version = self._data_version, self._read_data_version()
        if before == self._data_version:
            return ChangedPaths()
        rows = self._connection.execute(
            "SELECT id, paths FROM changes WHERE id > ? ORDER BY id", (self._seen_id,)
        ).fetchall()
        if rows and rows[0][0] != self._seen_id + 1:
            self._seen_id = rows[-1][0]
            return None
        changes = ChangedPaths()
        for number, paths in rows:
            self._seen_id = number
            data, children = json.loads(paths)
            changes.data.update(dict.fromkeys(data))
            changes.children.update(dict.fromkeys(children))
        return changes

    def history(self) -> str:
        """Return a mark that names the last change."""
        number, mark = self._last_change()
        return f"{_MARK_KIND}:{number}:{mark}"

    def require_history(self, mark: str) -> None:
        """Raise StoreRolledBack if the change that `mark` names was never made in this file."""
        kind, _, rest = mark.partition(":")
        number, _, expected = rest.partition(":")
        last, _ = self._last_change()
        row = self._connection.execute(
            "SELECT mark FROM changes WHERE id = ?", (number,)
        ).fetchone()
        replaced = row is not None and row[0] != expected
        if kind != _MARK_KIND or replaced or last < int(number):
            raise StoreRolledBack(
                f"the store {self.path} lacks change {number}, which this broker has seen: an older"
                f" copy stands in its place (its last change is {last}). Put the newest copy back,"
                " or remove ottla-store.mark from the log directory to accept the loss of newer"
                " decisions"
            )

    def sessions(self) -> list[SessionRow]:
        rows = self._connection.execute(
            "SELECT id, lock_file, lease_ms, boot_id FROM sessions ORDER BY id"
        )
        return [SessionRow(*row) for row in rows]

    def begin_session(self, lock_file: str, lease_ms: int, boot_id: str) -> int:
        """Add a session whose lock file is already locked; return its id."""

        def enter() -> int:
            cursor = self._connection.execute(
                "INSERT INTO sessions (lock_file, lease_ms, boot_id) VALUES (?, ?, ?)",
                (lock_file, lease_ms, boot_id),
            )
            assert cursor.lastrowid is not None
            self._note(ChangedPaths())
            return cursor.lastrowid

        return self.transact(enter)

    def end_session(
        self, session_id: int, still_true: Callable[[], bool] = lambda: True
    ) -> ChangedPaths:
        """Remove a session and its nodes, if it still exists and `still_true` returns True."""

        def forget() -> ChangedPaths:
            changes = ChangedPaths()
            if not (self.nodes.is_alive(session_id) and still_true()):
                return changes
            for path in self.nodes.owned(session_id):
                self.nodes.remove(path)
                changes.note(path, listed=True)
            self._connection.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
            self._note(changes)
            return changes

        return self.transact(forget)

    def _apply(self, operations: Sequence[Operation]) -> tuple[list[Result], ChangedPaths]:
        results, changes = apply(self.nodes, operations)
        if changes.data or changes.children:
            self._note(changes)
        return results, changes

    def _note(self, changes: ChangedPaths) -> None:
        """Add a change to the table that other clients read."""
        cursor = self._connection.execute(
            "INSERT INTO changes (mark, paths) VALUES (?, ?)",
            (secrets.token_hex(8), json.dumps([list(changes.data), list(changes.children)])),
        )
        number = cursor.lastrowid
        assert number is not None
        self._noted_id = number
        if number % 256 == 0:
            self._connection.execute("DELETE FROM changes WHERE id <= ?", (number - _CHANGES_KEPT,))

    def _last_change(self) -> tuple[int, str]:
        row = self._connection.execute(
            "SELECT id, mark FROM changes ORDER BY id DESC LIMIT 1"
        ).fetchone()
        return (0, "") if row is None else (int(row[0]), str(row[1]))

    def _set_up(self) -> None:
        self._use_write_ahead_log()
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute(f"PRAGMA wal_autocheckpoint={_LOG_PAGES}")
        # Erase removed credentials from free pages. Not every build of SQLite does so by default.
        self._connection.execute("PRAGMA secure_delete=ON")
        self._connection.execute("BEGIN IMMEDIATE")
        prepare_tables(self._connection)
        self._connection.execute("COMMIT")
        self._require_integrity()
        self._data_version = self._read_data_version()
        self._seen_id, _ = self._last_change()

    def _use_write_ahead_log(self) -> None:
        """Switch to the write-ahead log.

        If two processes open a new file at the same time, one of them fails here, because SQLite
        does not wait for the other. So it is retried.
        """
        deadline_s = time.monotonic() + _BUSY_TIMEOUT_S
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline_s:
                    raise
                time.sleep(0.005)

    def _require_integrity(self) -> None:
        (verdict,) = self._connection.execute("PRAGMA integrity_check(1)").fetchone()
        if verdict != "ok":
            raise StoreDamaged(
                f"the store {self.path} is damaged ({verdict}): put back a copy of it"
            )
        self.nodes.subtree("/")

    def _read_data_version(self) -> int:
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])


def _make_private(path: str) -> None:
    """Restrict the permissions of a file that was left open to other users."""
    try:
        before = narrow(path)
    except PermissionError:
        _log.error(
            "the store's file %s belongs to another user and is open to others, who can read the"
            " credentials and the cluster's secret in it: run `chmod 600` on it as its owner, or"
            " `chown` it to the user that runs the broker",
            path,
        )
        return
    if before is not None:
        _log.warning(
            "the store's file %s was open to other users of this machine (mode %04o) and is for its"
            " owner alone now; if others may have read it, give users new passwords",
            path,
            before,
        )


SCHEMA_VERSION = 2

# A change is one committed transaction: the paths it changed, and a random mark. If an older copy
# of the file is put back and changed further, its new changes have other marks.
_TABLES = """
CREATE TABLE nodes (
    path     TEXT PRIMARY KEY,
    parent   TEXT NOT NULL,
    data     BLOB NOT NULL,
    version  INTEGER NOT NULL,
    owner    INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX nodes_by_parent ON nodes (parent);
CREATE INDEX nodes_by_owner ON nodes (owner) WHERE owner <> 0;
CREATE TABLE sessions (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    lock_file TEXT NOT NULL,
    lease_ms  INTEGER NOT NULL,
    boot_id   TEXT NOT NULL
);
CREATE TABLE changes (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    mark  TEXT NOT NULL,
    paths TEXT NOT NULL
);
"""


def prepare_tables(connection: sqlite3.Connection) -> None:
    """Create the tables of a new file. Runs in an open transaction.

    Raises StoreDamaged if a newer version of Ottla wrote the file.
    """
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found == SCHEMA_VERSION:
        return
    if found > SCHEMA_VERSION:
        raise StoreDamaged(
            f"the store was written by a newer Ottla (its version {found}, ours {SCHEMA_VERSION}):"
            " run that one"
        )
    for statement in _TABLES.split(";"):
        connection.execute(statement)
    connection.execute(
        "INSERT INTO nodes VALUES ('/', '', x'', 0, 0, 0, ?)", (checksum_of("/", b"", 0, 0, 0),)
    )
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def checksum_of(path: str, data: bytes, version: int, owner: int, sequence: int) -> int:
    """A CRC-32 over the whole node, because SQLite's pages have no checksum."""
    return zlib.crc32(data, zlib.crc32(f"{path}\0{version}\0{owner}\0{sequence}".encode()))


def _checked(row: Any) -> Node:
    path, data, version, owner, sequence, checksum = row
    if checksum != checksum_of(path, data, version, owner, sequence):
        raise StoreDamaged(
            f"the store's node {path} is not what was written (its checksum differs): look at the"
            " disk, and put back a copy of the file"
        )
    return Node(data, version, owner)


class SqlNodes:
    """The nodes of an open transaction; a rollback undoes all changes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def version(self, path: str) -> int | None:
        row = self._one("SELECT version FROM nodes WHERE path = ?", path)
        return None if row is None else int(row[0])

    def insert(self, path: str, data: bytes, owner: int) -> None:
        checksum = checksum_of(path, data, 0, owner, 0)
        self._connection.execute(
            "INSERT INTO nodes VALUES (?, ?, ?, 0, ?, 0, ?)",
            (path, parent_of(path), data, owner, checksum),
        )

    def update(self, path: str, data: bytes, version: int) -> None:
        owner, sequence = self._one("SELECT owner, sequence FROM nodes WHERE path = ?", path)
        self._rewrite(path, data, version, owner, sequence)

    def remove(self, path: str) -> None:
        self._connection.execute("DELETE FROM nodes WHERE path = ?", (path,))

    def has_children(self, path: str) -> bool:
        return self._one("SELECT 1 FROM nodes WHERE parent = ? LIMIT 1", path) is not None

    def is_ephemeral(self, path: str) -> bool:
        row = self._one("SELECT owner FROM nodes WHERE path = ?", path)
        return row is not None and row[0] != 0

    def is_alive(self, session_id: int) -> bool:
        return self._one("SELECT 1 FROM sessions WHERE id = ?", session_id) is not None

    def next_sequence(self, path: str) -> int:
        row = self._one("SELECT data, version, owner, sequence FROM nodes WHERE path = ?", path)
        data, version, owner, sequence = row
        self._rewrite(path, data, version, owner, sequence + 1)
        return int(sequence)

    def get(self, path: str) -> Node | None:
        """Read a node. Raises StoreDamaged if its checksum is wrong."""
        row = self._one(
            "SELECT path, data, version, owner, sequence, checksum FROM nodes WHERE path = ?", path
        )
        return None if row is None else _checked(row)

    def children(self, path: str) -> list[str]:
        rows = self._connection.execute(
            "SELECT path FROM nodes WHERE parent = ? ORDER BY path", (path,)
        )
        return [row[0].rpartition("/")[2] for row in rows]

    def subtree(self, path: str) -> dict[str, Node]:
        """Read a node and all below it. Raises StoreDamaged if a checksum is wrong."""
        prefix = "/" if path == "/" else f"{path}/"
        # Paths below `prefix` sort between `prefix/` and the same text with the slash incremented.
        rows = self._connection.execute(
            "SELECT path, data, version, owner, sequence, checksum FROM nodes"
            " WHERE path = ? OR (path > ? AND path < ?) ORDER BY path",
            (path, prefix, prefix[:-1] + "0"),
        )
        return {row[0]: _checked(row) for row in rows}

    def owned(self, session_id: int) -> list[str]:
        rows = self._connection.execute(
            "SELECT path FROM nodes WHERE owner = ? AND owner <> 0", (session_id,)
        )
        return [row[0] for row in rows]

    def _rewrite(self, path: str, data: bytes, version: int, owner: int, sequence: int) -> None:
        self._connection.execute(
            "UPDATE nodes SET data = ?, version = ?, sequence = ?, checksum = ? WHERE path = ?",
            (data, version, sequence, checksum_of(path, data, version, owner, sequence), path),
        )

    # Rows are untyped, as in SQLite itself.
    def _one(self, query: str, key: str | int) -> Any:
        return self._connection.execute(query, (key,)).fetchone()


_IN_ATTRIB = 0x4
_EVENTS_BYTES = 65_536


def ring(path: str) -> None:
    """Wake the processes that listen to `path`."""
    os.utime(path)


class Bell:
    """Listens for `ring`, after which its file descriptor becomes readable."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    @classmethod
    def listen(cls, path: str) -> "Bell | None":
        """Listen to `path`; None if the system has no inotify, or no free instances."""
        if sys.platform != "linux":
            return None
        libc = ctypes.CDLL(None, use_errno=True)
        # The flags of inotify_init1 are those of open.
        descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if descriptor < 0:
            return None
        if libc.inotify_add_watch(descriptor, os.fsencode(path), _IN_ATTRIB) < 0:
            os.close(descriptor)
            return None
        return cls(descriptor)

    def clear(self) -> None:
        """Make the file descriptor wait for the next `ring`."""
        try:
            os.read(self.descriptor, _EVENTS_BYTES)
        except BlockingIOError:
            return

    def close(self) -> None:
        os.close(self.descriptor)
