"""Finds the files of a changelog table's current state, and removes ones that never joined it."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.chain import HIDDEN_FOLDER
from ottla.lake.model.live import hidden_after, live_after
from ottla.lake.model.manifest import DataFile, Manifest
from ottla.lake.tables.data_files import load_stem
from ottla.lake.tables.table import LakeTable, ManifestLink, without_overridden
from ottla.lake.write import changelog_checkpoints as checkpoints
from ottla.lake.write.changelog_checkpoints import StateFiles

_FOLDER = f"{HIDDEN_FOLDER}/"
_NAME = re.compile(r"v(\d{10})-([0-9a-f]{32})-p\d+-[0-9a-f]{12}\.parquet")
# A checkpoint is written after this many manifests since the previous one.
_MANIFESTS_BETWEEN = 10
# Every this many commits, hidden files of old commits are checked too, which reads all manifests.
_SWEEP_COMMITS = 100


@dataclass(frozen=True, slots=True)
class TableState:
    """The visible and the hidden file of each bucket; readers see only the visible one.

    For a history, only files that may still change: closed files are many and not part of the
    state.
    """

    visible: Mapping[int, DataFile]
    hidden: Mapping[int, DataFile]
    # The number of each file's typed schema; 0: raw columns only.
    schemas: Mapping[str, int] = field(default_factory=dict)
    # The manifests after the checkpoint that the state was read from.
    behind: Sequence[Manifest] = ()


def read_state_of(
    table: LakeTable,
    newest: Manifest | None,
    digest: str | None,
    accepted: Collection[str] = (),
) -> TableState:
    """Return the table's state, from its newest checkpoint and the manifests after that.

    `newest` and its digest are the result of `table.latest`; `accepted` has problems that an
    operator has overridden. Writes a checkpoint if many manifests follow the last one. Raises
    OttlaError as `table.latest` does.
    """
    version = newest.version if newest else 0
    for start in checkpoints.newest_first(table.store):
        if start.standing.version > version:
            continue  # This checkpoint is from before the table was rolled back.
        if start.standing.version == version and start.standing.digest != digest:
            continue
        with suppress(OttlaError):  # Ignore a checkpoint that contradicts the chain.
            return _followed(table, start, accepted)
    return _followed(table, StateFiles(), accepted)


def _followed(table: LakeTable, start: StateFiles, accepted: Collection[str]) -> TableState:
    live, hidden, schemas = dict(start.visible), dict(start.hidden), dict(start.schemas)
    standing, behind = start.standing, list[Manifest]()
    for link in without_overridden(table.links(standing)):
        manifest = _sound(table, link, accepted)
        problems = live_after(live, manifest) + hidden_after(hidden, manifest)
        if problems:
            raise _damaged(table, f"the manifest of commit {manifest.version}: {problems[0]}")
        live = {path: file for path, file in live.items() if not file.closed}
        number = manifest.table_schema.number if manifest.table_schema else 0
        schemas.update(dict.fromkeys((file.path for file in _added(manifest)), number))
        standing = link.after
        behind.append(manifest)
    visible_by, hidden_by = by_bucket(live), by_bucket(hidden)
    if (len(visible_by), len(hidden_by)) != (len(live), len(hidden)):
        raise _damaged(table, "a bucket has two files")
    schemas = {path: number for path, number in schemas.items() if path in live or path in hidden}
    if len(behind) >= _MANIFESTS_BETWEEN:
        # The commits are valid already, even if the checkpoint cannot be written.
        with suppress(OSError, OttlaError):
            checkpoints.write(table.store, StateFiles(standing, live, hidden, schemas))
    return TableState(visible_by, hidden_by, schemas, behind)


def _added(manifest: Manifest) -> Iterable[DataFile]:
    return (*manifest.files, *manifest.hidden)


def _sound(table: LakeTable, link: ManifestLink, accepted: Collection[str]) -> Manifest:
    problems = [problem for problem in link.problems if problem not in accepted]
    if link.manifest is None or problems:
        raise _damaged(table, "; ".join(problems or link.problems))
    return link.manifest


def by_bucket(files: Mapping[str, DataFile]) -> dict[int, DataFile]:
    """Return the file of each bucket."""
    return {file.partition: file for file in files.values()}


def hidden_stem(version: int, load_id: str, bucket: int) -> str:
    """Return the start of the names of a bucket's hidden files; attempts append their names."""
    return f"{_FOLDER}{load_stem(version, load_id)}-p{bucket}"


def remove_hidden_orphans(table: LakeTable, state: TableState, newest: Manifest) -> None:
    """Remove hidden files that no commit can ever name.

    Files of commits before `state.behind` were checked earlier, and are checked again occasionally.
    """
    known: Sequence[Manifest] = (*state.behind, newest)
    if newest.version % _SWEEP_COMMITS == 0:
        known = list(table.history())
    loads = {manifest.version: manifest.load_id for manifest in known}
    named = {file.path for manifest in known for file in manifest.hidden}
    for match in filter(None, map(_NAME.fullmatch, table.store.names(_FOLDER))):
        path, version = _FOLDER + match[0], int(match[1])
        if path in named or version not in loads or table.running.may_run(match[2]):
            continue
        table.store.remove(path)


def _damaged(table: LakeTable, problem: str) -> OttlaError:
    return OttlaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"the table in {table.store.url} is damaged: {problem}. Nothing is built on top of it: "
        "restore the file from a copy, or make the table anew in another folder",
    )
