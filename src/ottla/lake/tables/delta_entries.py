"""Reads the entries of a Delta log from its JSON files.

Delta removes entries that a checkpoint covers, by default after 30 days, so old entries may be
missing.
"""

import json
import re
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
        name = f"Delta's log entry {number}"
        try:
            content = store.read(f"{LOG_FOLDER}{number:020d}.json")
            entries.append(_entry(name, [json.loads(line) for line in content.splitlines()]))
        except FileNotFoundError:
            continue  # Removed meanwhile, as happens to old entries.
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            problems.append(f"{name} can't be read: {error}")
    gaps = set(range(numbers[0], numbers[-1])).difference(numbers) if numbers else ()
    problems += [f"Delta's log entry {gap} is missing, between others" for gap in sorted(gaps)]
    return entries, bool(numbers) and numbers[0] == 0 and not problems, problems


def _entry(name: str, actions: list[dict[str, Any]]) -> LogEntry:
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
    return LogEntry(name, operation, added, removed, load, positions)
