"""Which files a Delta log consists of: entries, checkpoints, and the pointer to the last of those.

    DIR/_delta_log/00000000000000000010.json
    DIR/_delta_log/00000000000000000010.checkpoint.parquet
    DIR/_delta_log/_last_checkpoint

Other programs write entries and checkpoints, too, and remove old entries that a checkpoint covers.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ottla.lake.log.records import NewFiles
from ottla.lake.stores.store import FileStore
from ottla.lake.tables.delta_entries import LOG_FOLDER

_ENTRY = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\b.*")
_POINTER = "_last_checkpoint"


def new_files(store: FileStore, since: Mapping[str, Any] | None) -> NewFiles:
    """The files that came into the log since the mark `since`, and those that may be rewritten."""
    before = {"entry": -1, "checkpoint": -1, **(since or {})}
    names = store.names(LOG_FOLDER, after=f"{before['checkpoint']:020d}" if since else "")
    entries = _numbers(_ENTRY, names)
    checkpoints = _numbers(_CHECKPOINT, names)
    found = [name for name in names if entries.get(name, -1) > before["entry"]]
    found += [name for name in names if checkpoints.get(name, -1) > before["checkpoint"]]
    found += [name for name in names if name == _POINTER]
    through = {
        "entry": max([before["entry"], *entries.values()]),
        "checkpoint": max([before["checkpoint"], *checkpoints.values()]),
    }
    return NewFiles([LOG_FOLDER + name for name in sorted(found)], through)


def needed(store: FileStore, gone: Sequence[str]) -> list[str]:
    """Of files that are gone, those that are needed: old ones go once a checkpoint is newer."""
    names = store.names(LOG_FOLDER)
    newest = max(_numbers(_CHECKPOINT, names).values(), default=-1)
    oldest = min(_numbers(_ENTRY, names).values(), default=0)
    missing = []
    for path in gone:
        name = path.removeprefix(LOG_FOLDER)
        entry, checkpoint = _ENTRY.fullmatch(name), _CHECKPOINT.fullmatch(name)
        if entry is not None:
            is_old = int(entry[1]) <= newest and int(entry[1]) < oldest
        else:
            is_old = checkpoint is not None and int(checkpoint[1]) < newest
        if not is_old:
            missing.append(path)
    return missing


def points_to_newer(store: FileStore, content: bytes, known: Collection[str]) -> bool:
    """Whether another program has written the pointer, to a checkpoint that it has made since."""
    names = store.names(LOG_FOLDER)
    newest = max(_numbers(_CHECKPOINT, names).values(), default=-1)
    try:
        version = json.loads(content)["version"]
    except (ValueError, KeyError, TypeError):
        return False
    made = [name for name, number in _numbers(_CHECKPOINT, names).items() if number == newest]
    is_known = any(LOG_FOLDER + name in known for name in made)
    return bool(version == newest and not is_known)


def is_pointer(path: str) -> bool:
    """Whether it is the one file of a Delta log that is written again."""
    return path == LOG_FOLDER + _POINTER


def _numbers(pattern: re.Pattern[str], names: Sequence[str]) -> dict[str, int]:
    matches = ((name, pattern.fullmatch(name)) for name in names)
    return {name: int(match[1]) for name, match in matches if match}
