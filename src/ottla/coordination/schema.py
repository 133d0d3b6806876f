"""The tables of the store's SQLite file, and the rules of `operations` on top of them."""

import sqlite3
from typing import Any

from ottla.coordination.store import Node, parent_of

# Sessions carry the lease and the name of their lock file, for brokers that share the file.
SCHEMA = """
CREATE TABLE IF NOT EXISTS nodes (
    path     TEXT PRIMARY KEY,
    parent   TEXT NOT NULL,
    data     BLOB NOT NULL,
    version  INTEGER NOT NULL,
    owner    INTEGER NOT NULL,
    sequence INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS nodes_by_parent ON nodes (parent);
CREATE INDEX IF NOT EXISTS nodes_by_owner ON nodes (owner) WHERE owner <> 0;
CREATE TABLE IF NOT EXISTS sessions (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    lock_file TEXT NOT NULL,
    lease_ms  INTEGER NOT NULL,
    boot_id   TEXT NOT NULL,
    renewed_monotonic_ms INTEGER NOT NULL
);
INSERT OR IGNORE INTO nodes VALUES ('/', '', x'', 0, 0, 0);
"""


class SqlNodes:
    """The nodes of an open transaction; rolling it back takes all changes back."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def version(self, path: str) -> int | None:
        row = self._one("SELECT version FROM nodes WHERE path = ?", path)
        return None if row is None else int(row[0])

    def insert(self, path: str, data: bytes, owner: int) -> None:
        self._connection.execute(
            "INSERT INTO nodes VALUES (?, ?, ?, 0, ?, 0)", (path, parent_of(path), data, owner)
        )

    def update(self, path: str, data: bytes, version: int) -> None:
        self._connection.execute(
            "UPDATE nodes SET data = ?, version = ? WHERE path = ?", (data, version, path)
        )

    def remove(self, path: str) -> None:
        self._connection.execute("DELETE FROM nodes WHERE path = ?", (path,))

    def has_children(self, path: str) -> bool:
        return self._one("SELECT 1 FROM nodes WHERE parent = ? LIMIT 1", path) is not None

    def is_ephemeral(self, path: str) -> bool:
        row = self._one("SELECT owner FROM nodes WHERE path = ?", path)
        return row is not None and row[0] != 0

    def next_sequence(self, path: str) -> int:
        row = self._one("SELECT sequence FROM nodes WHERE path = ?", path)
        assert row is not None, path
        self._connection.execute("UPDATE nodes SET sequence = sequence + 1 WHERE path = ?", (path,))
        return int(row[0])

    def get(self, path: str) -> Node | None:
        row = self._one("SELECT data, version FROM nodes WHERE path = ?", path)
        return None if row is None else Node(row[0], row[1])

    def children(self, path: str) -> list[str]:
        rows = self._connection.execute(
            "SELECT path FROM nodes WHERE parent = ? ORDER BY path", (path,)
        )
        return [row[0].rpartition("/")[2] for row in rows]

    def subtree(self, path: str) -> dict[str, Node]:
        prefix = "/" if path == "/" else f"{path}/"
        # Paths below `prefix` sort between it and the prefix with its slash counted up.
        rows = self._connection.execute(
            "SELECT path, data, version FROM nodes WHERE path = ? OR (path > ? AND path < ?)"
            " ORDER BY path",
            (path, prefix, prefix[:-1] + "0"),
        )
        return {row[0]: Node(row[1], row[2]) for row in rows}

    def owned(self, session_id: int) -> list[str]:
        rows = self._connection.execute("SELECT path FROM nodes WHERE owner = ?", (session_id,))
        return [row[0] for row in rows]

    # Rows are as untyped as SQLite itself.
    def _one(self, query: str, path: str) -> Any:
        return self._connection.execute(query, (path,)).fetchone()
