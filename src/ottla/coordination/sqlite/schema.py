"""The tables of the store's SQLite file, and `operations` on them."""

import sqlite3
import zlib
from typing import Any

from ottla.coordination.interface.errors import StoreDamaged
from ottla.coordination.interface.store import Node, parent_of

# Version 0 had neither checksums nor changes.
SCHEMA_VERSION = 2

# A change is one committed transaction: the paths it changed, and a random mark, by which
# a restored older copy is distinguished from the file it was copied from.
_TABLES = """
CREATE TABLE IF NOT EXISTS nodes (
    path     TEXT PRIMARY KEY,
    parent   TEXT NOT NULL,
    data     BLOB NOT NULL,
    version  INTEGER NOT NULL,
    owner    INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    checksum INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS nodes_by_parent ON nodes (parent);
CREATE INDEX IF NOT EXISTS nodes_by_owner ON nodes (owner) WHERE owner <> 0;
DROP TABLE IF EXISTS sessions;
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
INSERT OR IGNORE INTO nodes VALUES ('/', '', x'', 0, 0, 0, 0);
"""


def prepare_tables(connection: sqlite3.Connection) -> None:
    """Create the tables, or migrate older ones. Runs in an open transaction.

    Raises StoreDamaged where a newer version wrote the file.
    """
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found == SCHEMA_VERSION:
        return
    if found > SCHEMA_VERSION:
        raise StoreDamaged(
            f"the store was written by a newer Ottla (its version {found}, ours {SCHEMA_VERSION}):"
            " run that one"
        )
    columns = {row[1] for row in connection.execute("PRAGMA table_info(nodes)")}
    if columns and "checksum" not in columns:
        connection.execute("ALTER TABLE nodes ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0")
    for statement in _TABLES.split(";"):
        connection.execute(statement)
    for row in connection.execute("SELECT path, data, version, owner, sequence FROM nodes"):
        connection.execute(
            "UPDATE nodes SET checksum = ? WHERE path = ?", (checksum_of(*row), row[0])
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
