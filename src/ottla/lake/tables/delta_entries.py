"""Reads the entries of a Delta log from its JSON files.

Delta removes entries that a checkpoint covers, by default after 30 days, so old entries may be
missing.
"""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from ottla.lake.store.store import FileStore
from ottla.lake.tables.format_log import (
    DIGEST_KEY,
    POSITIONS_KEY,
    VERSION_KEY,
    LogEntry,
    NamedLoad,
    positions_of,
)

LOG_FOLDER = "_delta_log/"
_ENTRY = re.compile(r"(\d{20})\.json")


def read_entries(store: FileStore) -> tuple[list[LogEntry], bool, list[str]]:
    """Return the entries in order, whether the first entry is among them, and any problems."""
    names = map(_ENTRY.fullmatch, store.names(LOG_FOLDER))
    numbers = sorted(int(match[1]) for match in names if match)
    entries: list[LogEntry] = []
    problems = []
    for number in numbers:
        try:
            entries.append(_read(store, number))
        except FileNotFoundError:
            continue  # Removed meanwhile, as happens to old entries.
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            problems.append(f"{_name(number)} can't be read: {error}")
    gaps = set(range(numbers[0], numbers[-1])).difference(numbers) if numbers else ()
    problems += [f"{_name(gap)} is missing, between others" for gap in sorted(gaps)]
    return entries, bool(numbers) and numbers[0] == 0 and not problems, problems


def newest_entries(store: FileStore, newest: int, oldest: int = 0) -> Iterator[LogEntry]:
    """Yield the entries from `newest` back to `oldest`, up to the first that cannot be read."""
    for number in range(newest, oldest - 1, -1):
        try:
            entry = _read(store, number)
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            return
        yield entry


def _name(number: int) -> str:
    return f"Delta's log entry {number}"


def _read(store: FileStore, number: int) -> LogEntry:
    content = store.read(f"{LOG_FOLDER}{number:020d}.json")
    return _entry(number, [json.loads(line) for line in content.splitlines()])


def _entry(number: int, actions: list[dict[str, Any]]) -> LogEntry:
    info: dict[str, Any] = {}
    added: dict[str, int] = {}
    removed: set[str] = set()
    for action in actions:
        info = action.get("commitInfo", info)
        if "add" in action:
            added[unquote(action["add"]["path"])] = action["add"]["size"]
        if "remove" in action:
            removed.add(unquote(action["remove"]["path"]))
    operation = str(info.get("operation", "unknown"))
    load = positions = None
    if VERSION_KEY in info or DIGEST_KEY in info:
        load = NamedLoad(int(info[VERSION_KEY]), str(info[DIGEST_KEY]))
        positions = positions_of(info[POSITIONS_KEY])
    restored = None
    if operation == "RESTORE":
        given = info.get("operationParameters") or {}
        version, time = given.get("version"), given.get("timestamp") or given.get("datetime")
        restored = f"the version of {time}" if version is None else f"version {version}"
    return LogEntry(_name(number), operation, added, removed, load, positions, number, restored)
