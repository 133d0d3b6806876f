"""Reads the entries of a Delta log that still exist, from its JSON files.

Delta removes entries that a checkpoint covers, by default after 30 days; the remaining ones are
read.
"""

import json
import re
from typing import Any
from urllib.parse import unquote

from ottla.lake.store.store import FileStore
from ottla.lake.tables.table import (
    DIGEST_KEY,
    POSITIONS_KEY,
    VERSION_KEY,
    LogEntry,
    NamedLoad,
    positions_of,
)

LOG_FOLDER = "_delta_log/"
_ENTRY = re.compile(r"(\d{20})\.json")
# The number of digest digits that fit into the number of an application transaction.
_DIGITS = 15
# Delta writes a checkpoint every ten entries; if the last is much older, the library is faster.
_ENTRIES_MAX = 25


def digest_digits(digest: str) -> int:
    """Return the first digits of a digest as a number."""
    return int(digest[:_DIGITS], 16)


def read_entries(store: FileStore) -> tuple[list[LogEntry], bool, list[str]]:
    """Return the entries in order, whether they reach back to the first, and any problems."""
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
    problems += (
        [
            f"Delta's log entry {missing} is missing, between others"
            for missing in sorted(set(range(numbers[0], numbers[-1])).difference(numbers))
        ]
        if numbers
        else []
    )
    return entries, bool(numbers) and numbers[0] == 0 and not problems, problems


def newest_load(store: FileStore, version_app: str, digest_app: str) -> NamedLoad | None:
    """Return the newest load named in the log's entries since its last checkpoint.

    None if they name no load: then the whole log has to be read. The entry of a load has both
    application transactions.
    """
    try:
        first = int(json.loads(store.read(f"{LOG_FOLDER}_last_checkpoint"))["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    found = None
    for number in range(first, first + _ENTRIES_MAX):
        try:
            content = store.read(f"{LOG_FOLDER}{number:020d}.json")
            actions = [json.loads(line) for line in content.splitlines()]
            versions = {
                txn["appId"]: int(txn["version"]) for one in actions if (txn := one.get("txn"))
            }
        except FileNotFoundError:
            return found if number > first else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        if version_app in versions or digest_app in versions:
            if not {version_app, digest_app} <= versions.keys():
                return None
            found = NamedLoad(versions[version_app], f"{versions[digest_app]:015x}")
    return None


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
