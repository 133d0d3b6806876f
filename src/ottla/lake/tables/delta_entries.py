"""The entries of a Delta log that are still there, as they stand in its JSON files.

Delta removes entries that a checkpoint covers, by default after 30 days; what is left is read.
"""

import json
import re
from typing import Any
from urllib.parse import unquote

from ottla.lake.stores.store import FileStore
from ottla.lake.tables.log import (
    DIGEST_KEY,
    POSITIONS_KEY,
    VERSION_KEY,
    LogEntry,
    NamedLoad,
    positions_of,
)

LOG_FOLDER = "_delta_log/"
_ENTRY = re.compile(r"(\d{20})\.json")
# As many digits of a digest as fit into the number of an application transaction.
_DIGITS = 15


def digest_digits(digest: str) -> int:
    """The beginning of a digest as a number."""
    return int(digest[:_DIGITS], 16)


def read_entries(store: FileStore) -> tuple[list[LogEntry], bool, list[str]]:
    """Return the entries in order, whether they reach back to the first, and what is wrong."""
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
            continue  # Removed meanwhile, as old entries are.
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            problems.append(f"{name} can't be read: {error}")
    problems += (
        [
            f"Delta's log entry {missing} is missing, between others"
            for missing in sorted(set(range(numbers[0], numbers[-1])).difference(numbers))
        ]
        if numbers
        else []
    )
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
