"""The files that make up a changelog table's state now, and those that never became part of it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.log.contents import HIDDEN_FOLDER
from ottla.lake.log.live import hidden_after, live_after
from ottla.lake.manifest import DataFile, Manifest
from ottla.lake.tables.data_files import load_stem
from ottla.lake.tables.table import LakeTable

_FOLDER = f"{HIDDEN_FOLDER}/"
_NAME = re.compile(r"v(\d{10})-([0-9a-f]{32})-p\d+-[0-9a-f]{12}\.parquet")


@dataclass(frozen=True, slots=True)
class TableState:
    """The file of each bucket: the rows that readers see, and the hidden ones.

    Of a history those that may still change; closed files are many, and are no state.
    """

    visible: Mapping[int, DataFile]
    hidden: Mapping[int, DataFile]


def read_states(table: LakeTable) -> tuple[TableState, frozenset[str]]:
    """Return the table's state, and the paths of all hidden files that some commit names.

    Raises OttlaError as `table.latest` does.
    """
    live: dict[str, DataFile] = {}
    hidden: dict[str, DataFile] = {}
    named: set[str] = set()
    for manifest in table.history():
        problems = live_after(live, manifest) + hidden_after(hidden, manifest)
        if problems:
            raise _damaged(table, f"the manifest of commit {manifest.version}: {problems[0]}")
        named.update(file.path for file in manifest.hidden)
    live = {path: file for path, file in live.items() if not file.closed}
    visible_by, hidden_by = by_bucket(live), by_bucket(hidden)
    if (len(visible_by), len(hidden_by)) != (len(live), len(hidden)):
        raise _damaged(table, "a bucket has two files")
    return TableState(visible_by, hidden_by), frozenset(named)


def by_bucket(files: Mapping[str, DataFile]) -> dict[int, DataFile]:
    """The file of each bucket."""
    return {file.partition: file for file in files.values()}


def hidden_stem(version: int, load_id: str, bucket: int) -> str:
    """What the names of a bucket's hidden files start with; an attempt adds a name of its own."""
    return f"{_FOLDER}{load_stem(version, load_id)}-p{bucket}"


def remove_hidden_orphans(table: LakeTable, newest: Manifest, named: frozenset[str]) -> None:
    """Remove hidden files that no commit can ever name.

    `named` has those that a commit up to the one before `newest` names.
    """
    kept = named | {file.path for file in newest.hidden}
    for match in filter(None, map(_NAME.fullmatch, table.store.names(_FOLDER))):
        path = _FOLDER + match[0]
        if path in kept or int(match[1]) > newest.version or table.running.may_run(match[2]):
            continue
        table.store.remove(path)


def _damaged(table: LakeTable, problem: str) -> OttlaError:
    return OttlaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"the table in {table.store.url} is damaged: {problem}. Nothing is built on top of it: "
        "restore the file from a copy, or make the table anew in another folder",
    )
