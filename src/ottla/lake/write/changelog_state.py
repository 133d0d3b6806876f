"""Finds the files of a changelog table's current state, with the help of checkpoints.

    DIR/_ottla/states/00000000000000000020.json

A checkpoint lists the files of the state, so that only later manifests have to be read. It is
derived from the manifests and may be deleted at any time. If it is missing, damaged, or contradicts
the chain of manifests, a run only has to read more manifests.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.job.merge_task import read_state
from ottla.lake.model.chain import EMPTY, HIDDEN_FOLDER, TableStanding
from ottla.lake.model.layout import columns_of
from ottla.lake.model.live import hidden_after, live_after
from ottla.lake.model.manifest import DataFile, Manifest, seal, unseal
from ottla.lake.model.schema import VALIDITY
from ottla.lake.rows.key_changes import as_of
from ottla.lake.store.store import FileStore
from ottla.lake.tables.data_files import load_stem
from ottla.lake.tables.opening import existing_table
from ottla.lake.tables.table import LakeTable, ManifestLink, without_overridden

_HIDDEN_FILES = f"{HIDDEN_FOLDER}/"
_HIDDEN_NAME = re.compile(r"v(\d{10})-([0-9a-f]{32})-p\d+-[0-9a-f]{12}\.parquet")
# A checkpoint is written after this many manifests since the previous one.
_MANIFESTS_BETWEEN = 10
# At each commit whose version is a multiple of this, orphans of old commits are looked for too,
# which reads all manifests.
_SWEEP_COMMITS = 100
CHECKPOINTS = "_ottla/states/"
_CHECKPOINT_NAME = re.compile(r"(\d{20})\.json")
_CHECKPOINTS_KEPT = 2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES = [one.name for one in VALIDITY]
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class StateFiles:
    """The files of the state after the commit of `standing`, by path.

    Closed files are left out: they have only rows that later records can no longer change.
    """

    standing: TableStanding = EMPTY
    visible: Mapping[str, DataFile] = field(default_factory=dict)
    hidden: Mapping[str, DataFile] = field(default_factory=dict)
    # The number of each file's typed schema; 0 if it has raw columns only.
    schemas: Mapping[str, int] = field(default_factory=dict)


def checkpoints(store: FileStore) -> Iterator[StateFiles]:
    """Yield the checkpoints that can be read, newest first."""
    for version in reversed(_checkpoint_versions(store)):
        try:
            found, _ = unseal(store.read(_checkpoint_path(version)))
            standing = found["standing"]
            standing["positions"] = {int(p): int(at) for p, at in standing["positions"].items()}
            visible, hidden = (
                {one["path"]: DataFile(**one) for one in found[name]}
                for name in ("visible", "hidden")
            )
            schemas = {str(path): int(number) for path, number in found["schemas"].items()}
            yield StateFiles(TableStanding(**standing), visible, hidden, schemas)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue


def write_checkpoint(store: FileStore, state: StateFiles) -> None:
    """Write a checkpoint, and remove the ones that are no longer needed."""
    standing = {**asdict(state.standing), "positions": dict(state.standing.positions)}
    content = {
        "standing": standing,
        "visible": [asdict(file) for file in state.visible.values()],
        "hidden": [asdict(file) for file in state.hidden.values()],
        "schemas": dict(state.schemas),
    }
    store.replace(_checkpoint_path(state.standing.version), seal(content))
    for old in _checkpoint_versions(store)[:-_CHECKPOINTS_KEPT]:
        store.remove(_checkpoint_path(old))


def _checkpoint_versions(store: FileStore) -> list[int]:
    names = map(_CHECKPOINT_NAME.fullmatch, store.names(CHECKPOINTS))
    return sorted(int(match[1]) for match in names if match)


def _checkpoint_path(version: int) -> str:
    return f"{CHECKPOINTS}{version:020d}.json"


@dataclass(frozen=True, slots=True)
class TableState:
    """The visible and the hidden file of each bucket. Readers see only the visible file.

    A history also has many closed files, whose rows cannot change any more. They are not part of
    the state.
    """

    visible: Mapping[int, DataFile] = field(default_factory=dict)
    hidden: Mapping[int, DataFile] = field(default_factory=dict)
    # The number of each file's typed schema; 0 if it has raw columns only.
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

    `newest` and its digest are the result of `table.latest`. Problems in `accepted`, which an
    operator has overridden, are ignored. Writes a checkpoint if many manifests follow the last one.
    Raises OttlaError as `table.latest` does.
    """
    version = newest.version if newest else 0
    for start in checkpoints(table.store):
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
            write_checkpoint(table.store, StateFiles(standing, live, hidden, schemas))
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
    """Return the prefix of the paths of a bucket's hidden files; task attempts append a name."""
    return f"{_HIDDEN_FILES}{load_stem(version, load_id)}-p{bucket}"


def remove_hidden_orphans(table: LakeTable, state: TableState, newest: Manifest) -> None:
    """Remove hidden files that no commit can ever name.

    Files of commits before `state.behind` were checked earlier, and are checked again occasionally.
    """
    known: Sequence[Manifest] = (*state.behind, newest)
    if newest.version % _SWEEP_COMMITS == 0:
        known = list(table.history())
    loads = {manifest.version: manifest.load_id for manifest in known}
    named = {file.path for manifest in known for file in manifest.hidden}
    for match in filter(None, map(_HIDDEN_NAME.fullmatch, table.store.names(_HIDDEN_FILES))):
        path, version = _HIDDEN_FILES + match[0], int(match[1])
        if path in named or version not in loads or table.running.may_run(match[2]):
            continue
        table.store.remove(path)


def _damaged(table: LakeTable, problem: str) -> OttlaError:
    return OttlaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"the table in {table.store.url} is damaged: {problem}. Nothing is built on top of it: "
        "restore the file from a copy, or make the table anew in another folder",
    )


def changelog_as_of(
    target: str, moment: datetime, *, store_options: Mapping[str, str] | None = None
) -> pa.Table:
    """Return the rows of the history in `target` that were the latest of their keys at `moment`.

    `moment` needs a time zone. The columns are those of a load. A key that occurs in several
    partitions has one row for each. Raises OttlaError if `target` is not a history.
    """
    micros = micros_of(moment)
    table = existing_table(target, store_options)
    newest, _ = table.latest()
    require_history(target, newest)
    parts = [as_of(read_state(table.store, file), micros) for file in table.live_files()]
    # Files that were not rewritten since a column was added lack that column.
    return pa.concat_tables(
        [columns_of(newest).empty_table().drop_columns(_TIMES), *parts],
        promote_options="permissive",
    )


def micros_of(moment: datetime) -> int:
    """Return microseconds since 1970, as in files. Raises OttlaError without a time zone."""
    if moment.tzinfo is None:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST, f"{moment} has no time zone: give one, such as timezone.utc"
        )
    return (moment - _EPOCH) // _MICROSECOND


def require_history(target: str, newest: Manifest | None) -> None:
    """Raise OttlaError if a table is not a history."""
    if newest is None or newest.changelog is None or newest.changelog.keeps != "history":
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"{target} holds no history: `ottla lake changelog TOPIC --to DIR --kind history`",
        )
