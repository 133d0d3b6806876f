"""Names of data files, and the removal of files that can never become part of the table.

    data/v<version>-<load id>-p<partition>-<start>-<attempt>.parquet
    data/event_day=2026-11-23/v<version>-…

In a table that is partitioned by event time, each bucket has its own folder. The version and the id
in a name are those of the load that wrote the file.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from ottla.lake.model.chain import DATA_FOLDER, DEAD_LETTERS_FOLDER
from ottla.lake.model.event_times import is_folder
from ottla.lake.store.store import FileStore
from ottla.lake.tables.markers import RunningLoads

FOLDER = "data/"
DEAD_LETTERS = "_dead_letters/"  # Files in it are named like those in the folder of data.
_HIDDEN = "_ottla/hidden/"  # Also named like data files; only changelog tables have them.
_FOLDERS = (FOLDER, DEAD_LETTERS, _HIDDEN)
# If the store has to list many pages, only files of this many recent versions are checked for
# orphans each time, and all files once in this many versions.
_LOOKED_AT_OFTEN = 20
_ID = len("v0000000001-")
_STEM = _ID + 32  # Length of version and load id in a name.
_NAME = re.compile(r"v(\d{10})-([0-9a-f]{32})-.*\.parquet(\.tmp)?")
_PATH = re.compile(rf"(?:{FOLDER}(?:event_[^/]+/)?|{DEAD_LETTERS}){_NAME.pattern}")


def file_stem(version: int, load_id: str, partition: int, start: int) -> str:
    """Return the prefix of the paths of a range's files, relative to the store's root.

    A task attempt appends a hyphen, its own name, and `.parquet`.
    """
    return f"{FOLDER}{load_stem(version, load_id)}-p{partition}-{start:020d}"


def load_stem(version: int, load_id: str) -> str:
    """Return the prefix of the names of all files of a load."""
    return f"v{version:010d}-{load_id}"


def has_data_files(store: FileStore) -> bool:
    """Return whether there are data files of any load, committed or not."""
    return any(_NAME.fullmatch(name) or is_folder(name) for name in store.names(FOLDER))


def remove_load(store: FileStore, version: int, load_id: str) -> None:
    """Remove all files of one failed load."""
    stem = load_stem(version, load_id)
    for folder in _FOLDERS:
        # This name sorts before every name that begins with the stem.
        for name in store.names(folder, after=stem):
            if name.startswith(stem):
                store.remove(folder + name)
    if _has_buckets(store):
        for file in store.files(FOLDER):
            if PurePosixPath(file.path).name.startswith(stem):
                store.remove(file.path)


def _has_buckets(store: FileStore) -> bool:
    """Return whether the table's data files are in folders of event-time buckets."""
    if store.lists_all_at_once:
        return any(is_folder(name) for name in store.names(FOLDER))
    first = next(iter(store.files(FOLDER)), None)
    return first is not None and PurePosixPath(first.path).parent.name != FOLDER.rstrip("/")


def _names(store: FileStore, loads: int) -> list[str]:
    """Return the names of the data files to check for orphans, relative to the folder of data."""
    is_due = store.lists_all_at_once or loads % _LOOKED_AT_OFTEN == 0
    if is_due and _has_buckets(store):
        return [file.path.removeprefix(FOLDER) for file in store.files(FOLDER)]
    after = "" if is_due else f"v{max(0, loads - _LOOKED_AT_OFTEN):010d}"
    return store.names(FOLDER, after)


def remove_orphans(
    store: FileStore,
    running: RunningLoads,
    loads_now: Callable[[], Sequence[str]],
    paths_named: Callable[[int], set[str]],
) -> list[str]:
    """Remove files of loads that lost their version to another load; return the files' names.

    `loads_now` returns `<load id>:<number of its files>` for each version from 1. `paths_named`
    reads the paths in a version's manifest. Files of a load that is still running stay, and so do
    files for the next version, which may still be committed.
    """
    loads = loads_now()
    versions: dict[str, int] = {}
    counts: dict[str, int] = {}
    for version, load in enumerate(loads, start=1):
        load_id, _, count = load.partition(":")
        versions[load_id], counts[load_id] = version, int(count)
    # Hot: search by the load id in the name, since a table has many files. A compaction that
    # committed on top of others has a later version than its files' names.
    found: dict[str, list[str]] = {}
    for name in _names(store, len(loads)):
        at = name.rfind("/") + 1
        found.setdefault(name[at + _ID : at + _STEM], []).append(FOLDER + name)
    # If a load has as many files as its manifest, the manifest need not be read.
    found = {one: paths for one, paths in found.items() if len(paths) != counts.get(one)}
    for name in store.names(DEAD_LETTERS):
        found.setdefault(name[_ID:_STEM], []).append(DEAD_LETTERS + name)
    idle = {load_id for load_id in found if not running.may_run(load_id)}
    # A load that commits on top of others has files named for an earlier version. It may have
    # committed and ended after the first call of `loads_now`.
    unknown = idle - versions.keys()
    if unknown:
        idle -= unknown & {load.partition(":")[0] for load in loads_now()}
    removed = []
    for load_id in idle:
        matches = [match for match in map(_PATH.fullmatch, found[load_id]) if match]
        if not matches:
            continue
        if load_id in versions:
            named = paths_named(versions[load_id])
            removed += [match[0] for match in matches if match[0] not in named]
        else:
            removed += [match[0] for match in matches if int(match[1]) <= len(loads)]
    for path in removed:
        store.remove(path)
    running.sweep()
    return sorted(path.removeprefix(FOLDER).removeprefix(DEAD_LETTERS) for path in removed)


# The names of files that task attempts write.
_ATTEMPT = re.compile(r"v\d{10}-[0-9a-f]{32}-p\d+-\d{20}-[0-9A-Za-z]+\.parquet(\.tmp)?")
_OF_TASKS = frozenset({DATA_FOLDER, DEAD_LETTERS_FOLDER})


def files_present(store: FileStore) -> tuple[list[str], list[str]]:
    """Return foreign files, whose names are not from tasks, and files of tasks, committed or not.

    Names that begin with a dot or an underscore are skipped, as readers do, except for the folder
    of dead letters. Outside the folders of tasks only Parquet files are returned.
    """
    foreign, of_tasks = [], []
    for top in store.top():
        if top.startswith(("_", ".")) and top not in _OF_TASKS:
            continue
        if top.endswith(".parquet"):
            foreign.append(top)
        for path in (file.path for file in store.files(f"{top}/")):
            *folders, name = path.split("/")
            is_data = top in _OF_TASKS
            if any(one.startswith(("_", ".")) for one in (*folders[1:], name)):
                continue
            in_place = len(folders) == 1 or (len(folders) == 2 and is_folder(folders[1]))
            if is_data and in_place and _ATTEMPT.fullmatch(name):
                of_tasks.append(path)
            elif is_data or name.endswith(".parquet"):
                foreign.append(path)
    return sorted(foreign), sorted(of_tasks)
