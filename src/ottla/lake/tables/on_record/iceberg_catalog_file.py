"""The catalog in a table's own folder: a SQLite file, compared with what the last load left there.

Its bytes are compared first. Where they differ its rows count, with SQLite's own check of its
pages: other programs that commit to the table change the row of the table, and programs that
rewrite the file (VACUUM) its pages. Bytes that no row lies in, such as free pages, may then be any.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ottla.base.errors import OttlaError

_POINTER = "SELECT metadata_location FROM iceberg_tables ORDER BY 1"
# Of the file's header: size of pages, versions, formats of schema and text.
_SETTINGS = (slice(0, 24), slice(44, 60))
_NAMED_MAX = 3


def catalog_state(path: Path) -> dict[str, Any]:
    """What the catalog holds. Raises sqlite3.Error and OSError."""
    with _opened(path) as database:
        # No other program writes while this transaction reads.
        database.execute("BEGIN")
        rows = _digest_of_rows(database)
        pointers = [row[0] for row in database.execute(_POINTER)]
        content = path.read_bytes()
        database.execute("ROLLBACK")
    return {
        "size_bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "settings": b"".join(content[part] for part in _SETTINGS).hex(),
        "rows": rows,
        "pointers": pointers,
    }


def catalog_findings(
    path: Path, known: Mapping[str, Any], has_moved_on: Callable[[], bool]
) -> tuple[list[str], list[str]]:
    """Compare the catalog with what `catalog_state` saw: problems, and what is only to be said.

    `has_moved_on` says whether another program has committed to the table since.
    """
    name = f"the catalog {path.name}"
    try:
        if _same_bytes(path, known):
            return [], []
        damage = _page_problems(path)
        now = catalog_state(path)
        if damage:
            return [f"{name} is damaged: {'; '.join(damage[:_NAMED_MAX])}"], []
        if now["settings"] != known["settings"]:
            return [f"{name} has other settings in its header than the last load left"], []
        if now["rows"] == known["rows"]:
            return [], [
                f"{name} has other bytes than the last load left, and the same rows: unused "
                "space differs, or a program has written the file anew"
            ]
        if now["pointers"] == known["pointers"]:
            return [f"{name} has other rows than the last load left, with the same metadata"], []
        return _moved(name, now["pointers"], has_moved_on), []
    except (sqlite3.Error, OSError, ValueError) as error:
        return [f"{name} can't be read: {error}"], []


def _moved(name: str, pointers: Sequence[str], has_moved_on: Callable[[], bool]) -> list[str]:
    problem = f"{name} names {', '.join(pointers)}, which did not follow what the last load left"
    try:
        return [] if has_moved_on() else [problem]
    except OttlaError as error:
        return [f"{problem}: {error.message}"]


def _same_bytes(path: Path, known: Mapping[str, Any]) -> bool:
    """Whether the file has the bytes that `catalog_state` saw. Raises OSError."""
    content = path.read_bytes()
    return (len(content), hashlib.sha256(content).hexdigest()) == (
        known["size_bytes"],
        known["sha256"],
    )


def _page_problems(path: Path) -> list[str]:
    """What SQLite finds wrong with the file's pages. Raises sqlite3.Error."""
    with _opened(path) as database:
        found = [str(row[0]) for row in database.execute("PRAGMA integrity_check")]
    return [] if found == ["ok"] else found


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    # A file that is gone is not made.
    address = f"{path.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=60, isolation_level=None)) as database:
        yield database


def _digest_of_rows(database: sqlite3.Connection) -> str:
    """Of all tables and indexes with all their rows, in an order of their own."""
    names = database.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
    ).fetchall()
    hashed = hashlib.sha256(repr(names).encode())
    for kind, name, *_ in names:
        if kind == "table":
            quoted = name.replace('"', '""')
            rows = database.execute(f'SELECT * FROM "{quoted}"').fetchall()
            hashed.update(repr((name, sorted(rows, key=repr))).encode())
    return hashed.hexdigest()
