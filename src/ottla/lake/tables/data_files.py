"""Names of data files, and the removal of those that can never count.

    data/v<version>-<load id>-p<partition>-<start>-<attempt>.parquet

A name says which load wrote the file: its version and its id.
"""

import re
from collections.abc import Callable, Sequence

from ottla.lake.stores.store import FileStore
from ottla.lake.tables.running import RunningLoads

FOLDER = "data/"
DEAD_LETTERS = "_dead_letters/"  # Names as in the folder of data.
_FOLDERS = (FOLDER, DEAD_LETTERS)
# Where names cost, files of so many versions are looked at each time, older ones once in a while.
_LOOKED_AT_OFTEN = 20
_STEM = len("v0000000001-") + 32  # Version and load id.
_NAME = re.compile(r"v(\d{10})-([0-9a-f]{32})-.*\.parquet(\.tmp)?")


def file_stem(version: int, load_id: str, partition: int, start: int) -> str:
    """What the names of a range's files start with, relative to the store's root.

    A task attempt adds a hyphen, a name of its own, and `.parquet`.
    """
    return f"{FOLDER}{load_stem(version, load_id)}-p{partition}-{start:020d}"


def load_stem(version: int, load_id: str) -> str:
    """What the names of all files of a load start with, in the folder of data."""
    return f"v{version:010d}-{load_id}"


def has_data_files(store: FileStore) -> bool:
    """Whether files of loads are there, whether they count or not."""
    return any(_NAME.fullmatch(name) for name in store.names(FOLDER))


def remove_load(store: FileStore, version: int, load_id: str) -> None:
    """Remove all files of one load, which has failed."""
    stem = load_stem(version, load_id)
    for folder in _FOLDERS:
        # A name that is smaller than any that begins with the stem.
        for name in store.names(folder, after=stem):
            if name.startswith(stem):
                store.remove(folder + name)


def remove_orphans(
    store: FileStore,
    running: RunningLoads,
    loads: Sequence[str],
    paths_named: Callable[[int], set[str]],
) -> list[str]:
    """Remove files of versions that other loads have taken; return their names.

    `loads` has `<load id>:<number of its files>` of each version from 1, `paths_named` reads which
    paths the manifest of a version names. Files of a load that still runs stay: it is still to find
    out that it has lost. Files for the next version stay, too.
    """
    # Hot: by the part of the name with version and load id, since a table has many files.
    found: dict[str, list[str]] = {}
    after = ""
    if not store.lists_all_at_once and len(loads) % _LOOKED_AT_OFTEN:
        after = f"v{max(0, len(loads) - _LOOKED_AT_OFTEN):010d}"
    for name in store.names(FOLDER, after):
        found.setdefault(name[:_STEM], []).append(name)
    for version, load in enumerate(loads, start=1):
        load_id, _, count = load.partition(":")
        stem = load_stem(version, load_id)
        if len(found.get(stem, ())) == int(count):
            found.pop(stem, None)  # Exactly its files: the manifest need not be read.
    removed = []
    for names in found.values():
        matches = [match for match in map(_NAME.fullmatch, names) if match]
        if not matches:
            continue
        version, load_id = int(matches[0][1]), matches[0][2]
        if version > len(loads) or running.may_run(load_id):
            continue
        named = paths_named(version)
        removed += [match[0] for match in matches if FOLDER + match[0] not in named]
    for name in removed:
        store.remove(FOLDER + name)
    removed += _remove_dead_letters(store, running, len(loads), paths_named)
    running.sweep()
    return sorted(removed)


def _remove_dead_letters(
    store: FileStore,
    running: RunningLoads,
    versions: int,
    paths_named: Callable[[int], set[str]],
) -> list[str]:
    """Remove files of dead letters that can never count. A table has few, so each is looked up."""
    removed = []
    for match in filter(None, map(_NAME.fullmatch, store.names(DEAD_LETTERS))):
        path, version = DEAD_LETTERS + match[0], int(match[1])
        if version > versions or running.may_run(match[2]) or path in paths_named(version):
            continue
        store.remove(path)
        removed.append(match[0])
    return removed
