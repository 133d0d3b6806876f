"""The log of a table format (Delta or Iceberg), and its comparison with the chain of manifests.

A manifest is part of the table only if the log names it. Each commit of ottla in the log names a
manifest by version and digest, and repeats the positions. Other programs may commit in between;
their changes to files are read as well.

The chain of manifests says what loads did, and the log says what readers see. So each commit of
ottla in the log must agree with a manifest on files and positions, and each manifest's files must
be live in the log. Other programs may have replaced files, for example by compaction. That is
allowed if the rows are the same, which the caller has to compare.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.quantities import counted
from ottla.lake.model.event_times import ONE_BUCKET, Buckets
from ottla.lake.model.live import live_after
from ottla.lake.model.manifest import DataFile, Manifest
from ottla.lake.model.schema import NEVER_NULL
from ottla.lake.store.errors import as_log_error
from ottla.lake.store.retries import retried
from ottla.lake.store.store import FileStore
from ottla.lake.tables.commit import CommitRefused, Doubt, doubted_once_tried
from ottla.lake.tables.statistics import FileStatistics
from ottla.lake.tables.table import Agreement, FilesOfOthers, LiveFile

# Keys in Delta's commit information and in Iceberg's snapshots.
VERSION_KEY = "ottla.version"
DIGEST_KEY = "ottla.digest"
POSITIONS_KEY = "ottla.positions"
# How often a commit is tried, since commits of other programs may come first.
TRIES = 20
_NAMED_MAX = 5


@dataclass(frozen=True, slots=True)
class NamedLoad:
    """The newest load that a log names; version 0 if it names none.

    `digest` may be only the first digits of the manifest's digest.
    """

    version: int = 0
    digest: str = ""
    problem: str | None = None  # Set if the log contradicts itself.

    def is_of(self, version: int, digest: str | None) -> bool:
        """Return whether this names the manifest with this version and digest."""
        return self.version == version and (digest or "").startswith(self.digest)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One commit in a log. `load` and `positions` are None for commits of other programs."""

    name: str  # Its name in messages.
    operation: str
    added: Mapping[str, int]  # Size in bytes by path.
    removed: AbstractSet[str]
    load: NamedLoad | None = None
    positions: Mapping[int, int] | None = None
    number: int = 0  # The version of the table after it, in Delta.
    restored: str | None = None  # Set if it restored an older version: which one.


@dataclass(frozen=True, slots=True)
class LogReading:
    """The contents of a log. Entries are in order; the oldest may have been removed."""

    newest: NamedLoad
    entries: Sequence[LogEntry]
    is_whole: bool  # Whether no older entry of the log was removed.
    live: Mapping[str, LiveFile]
    problems: Sequence[str] = field(default=())
    is_shared: bool = False  # Whether other programs have their own rows in the table.


class TableLog(ABC):
    """The log of one table, which need not exist before the first commit."""

    kind: str  # The name of the format in messages: `Delta` or `Iceberg`.
    # Settings that the table's first load stores for later loads, such as the catalog.
    settings: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, store: FileStore, *, is_shared: bool) -> None:
        self._store = store
        # Whether another program made the table, and has its own rows in it.
        self._is_shared = is_shared

    @abstractmethod
    def newest(self) -> NamedLoad:
        """Return the newest load that the log names."""

    def newest_entries(self) -> Iterator[LogEntry]:
        """Yield the log's entries, newest first, up to the first that cannot be read.

        Yields none if `newest` already notices that other programs restored an older version.
        """
        return iter(())

    def require_writable(self) -> None:  # noqa: B027  # Iceberg has no such features.
        """Raise OttlaError if the table has a feature with which nothing can be committed to it."""

    @abstractmethod
    def require_fitting(self, columns: Any, buckets: Buckets) -> None:
        """Raise OttlaError if files with these Arrow `columns` do not fit a table of others."""

    @abstractmethod
    def require_shared(self) -> None:
        """Raise OttlaError unless another program made a table here that can be loaded into."""

    @abstractmethod
    def live_paths(self) -> Sequence[str]:
        """Return the paths of the live files, in no order."""

    @abstractmethod
    def read(self, columns: Any, buckets: Buckets = ONE_BUCKET) -> LogReading:
        """Read the whole log, to compare it with the manifests.

        `columns` is the Arrow schema of the newest load's files. `buckets` says how the files are
        divided by event time.
        """

    @abstractmethod
    def forget(self, oldest: int, *, dry_run: bool) -> AbstractSet[str]:
        """Drop the versions before ottla's commit `oldest` from the log, unless it is a `dry_run`.

        Returns paths of files that the log still needs. Raises OttlaError.
        """

    @abstractmethod
    def must_rewrite(self, columns: Any) -> bool:
        """Return whether older files must be rewritten before files with `columns` are added.

        `columns` is an Arrow schema. Older files must be rewritten if a type is wider than the
        table's and the format has one type for all files.
        """

    def commit(self, manifest: Manifest, digest: str) -> bool:
        """Add and remove the files of `manifest`, and name it in the log, in one step.

        Returns True once the log names this manifest, even if an earlier answer was lost. Returns
        False if the log names another manifest of this version, or a later version. Creates the log
        if needed. Commits of other programs in between do not fail it. Raises OttlaError.
        """
        with doubted_once_tried(self._store.url, manifest.version) as doubt:
            return retried(TRIES, CommitRefused)(self._commit_once, manifest, digest, doubt)

    @abstractmethod
    def _commit_once(self, manifest: Manifest, digest: str, doubt: Doubt) -> bool:
        """Try once what `commit` does. Raises CommitRefused if a retry may succeed."""

    def _errors(self) -> AbstractContextManager[None]:
        """Convert errors of the format's library to OttlaError."""
        return as_log_error(self.kind, self._store.url)

    def _failed(self, why: object, kind: type[OttlaError] = CommitRefused) -> OttlaError:
        what = f"the {self.kind} table in {self._store.url} can't be read or written: {why}"
        return kind(ErrorCode.KAFKA_STORAGE_ERROR, what)

    def _not_loadable(self, *problems: str) -> OttlaError:
        return OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"nothing can be loaded into the {self.kind} table in {self._store.url}: "
            f"{'; '.join(problems)}. Change the table (ALTER TABLE), or the columns of the load",
        )

    @staticmethod
    def _null_problems(required: Iterable[str], loaded: Iterable[str]) -> list[str]:
        """Return a problem for each `required` column that may be null in loaded rows."""
        found = set(loaded)
        return [
            f"its column {name} is never null, and "
            + ("may be null in the load" if name in found else "the load has no values for it")
            for name in required
            if name not in found & NEVER_NULL
        ]

    def _require_live(self, manifest: Manifest, live: Mapping[str, object]) -> None:
        """Raise OttlaError if a file to remove is not live; another file has its rows now."""
        gone = [file.path for file in manifest.removed if file.path not in live]
        if gone:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"the {self.kind} table in {self._store.url} does not have {gone[0]} any more: "
                "another program has removed or replaced it; nothing was committed. `ottla lake "
                "verify` tells what became of its rows",
            )


@dataclass(frozen=True, slots=True)
class Restore:
    """A restore, by another program, of a version before the newest load."""

    entry: LogEntry
    load: LogEntry | None  # The newest load; None if the log no longer has its entry.
    removed_later: AbstractSet[str]  # Files that were removed after the restore.


def restore_after_load(entries: Iterable[LogEntry]) -> Restore | None:
    """Return the restore of a version before the newest load; `entries` are the newest first.

    Returns None if there is no such restore, or if a later one took it back. A restore of a version
    after the load leaves the files of one of those versions.
    """
    load, since = None, list[LogEntry]()
    for entry in entries:
        if entry.load is not None:
            load = entry
            break
        since.append(entry)
    added, removed = frozenset[str](), frozenset[str]()
    sound = {(added, removed)}  # Files added and removed after the load, at each version.
    found, later = None, set[str]()
    for entry in reversed(since):
        plus, minus = entry.added.keys() - entry.removed, entry.removed - entry.added.keys()
        added, removed = added - minus | (plus - removed), removed - plus | (minus - added)
        if entry.restored is not None:
            found, later = None if (added, removed) in sound else entry, set()
        elif found is not None:
            later |= minus
        if found is None:
            sound.add((added, removed))
    return None if found is None else Restore(found, load, later)


def positions_text(positions: Mapping[int, int]) -> str:
    """Return positions as text, as logs store them."""
    return json.dumps({str(partition): positions[partition] for partition in sorted(positions)})


def positions_of(text: str) -> dict[int, int]:
    """Parse the text of `positions_text`. Raises ValueError, TypeError or AttributeError."""
    return {int(partition): int(offset) for partition, offset in json.loads(text).items()}


def compare(
    kind: str, reading: LogReading, chain: Sequence[tuple[Manifest, str | None]]
) -> Agreement:
    """Compare a log with the manifests of the chain and their digests, oldest first."""
    problems = list(reading.problems)
    if reading.newest.problem:
        problems.append(f"{kind}'s log contradicts itself: {reading.newest.problem}")
    by_version = {manifest.version: (manifest, digest) for manifest, digest in chain}
    problems += _of_entries(kind, reading, by_version)
    live: dict[str, DataFile] = {}
    for manifest, _ in chain:
        live_after(live, manifest)  # Contradictions within a manifest are reported with the chain.
    problems += _of_live(kind, reading.live, live)
    bounds = {path: found.bounds for path, found in reading.live.items() if path in live}
    remarks = _of_forgotten(kind, reading)
    others = _of_others(reading, live)
    if reading.is_shared:
        remarks += _of_shared(others)
        others = replace(others, instead={})
    return Agreement(problems, others, bounds, remarks, reading.is_shared)


def _of_shared(others: FilesOfOthers) -> list[str]:
    """Return a note on rows of other programs in a shared table, which the proof leaves out."""
    if not others.instead:
        return []
    rows = [file.rows and file.rows - file.deleted for file in others.instead.values()]
    total = sum(filter(None, rows))
    known = f" with {counted(total, 'row')}" if None not in rows else ""
    return [
        f"{counted(len(rows), 'file')}{known} of other programs count in the table, too: the proof "
        "covers what ottla loaded"
    ]


def _of_forgotten(kind: str, reading: LogReading) -> list[str]:
    """Return a note about loads whose log entries or snapshots have expired."""
    if reading.is_whole:
        return []
    first = min((one.load.version for one in reading.entries if one.load), default=None)
    until = reading.newest.version if first is None else first - 1
    if not until:
        return []
    loads = f"loads 1 to {until}" if until > 1 else "load 1"
    return [
        f"{kind}'s log has no entries of {loads} any more (they have expired): what these added "
        "and removed is proven by their manifests and by the files that count now, and not "
        "compared with the log"
    ]


def _of_entries(
    kind: str, reading: LogReading, chain: Mapping[int, tuple[Manifest, str | None]]
) -> list[str]:
    problems = []
    ours = [entry for entry in reading.entries if entry.load is not None]
    last = 0 if reading.is_whole else None
    for entry in ours:
        assert entry.load is not None
        version = entry.load.version
        if last is not None and version != last + 1:
            problems.append(f"{entry.name} is of load {version}, where {last + 1} has to follow")
        last = version
        manifest, digest = chain.get(version, (None, None))
        if manifest is None:
            problems.append(f"{entry.name} names load {version}, of which no manifest is there")
        elif digest != entry.load.digest:
            problems.append(
                f"{entry.name} names another manifest of load {version} than the one of the chain"
            )
        else:
            problems += _of_entry(entry, manifest)
    if ours and last != reading.newest.version:
        problems.append(
            f"{kind}'s log says that load {reading.newest.version} is the newest, and its entries "
            f"end with load {last}"
        )
    return problems


def _of_entry(entry: LogEntry, manifest: Manifest) -> list[str]:
    problems = []
    added = {file.path: file.size_bytes for file in manifest.files}
    removed = {file.path for file in manifest.removed}
    if entry.added != added:
        wrong = sorted(
            path
            for path in entry.added.keys() | added.keys()
            if entry.added.get(path) != added.get(path)
        )
        problems.append(
            f"{entry.name} does not add the files of load {manifest.version}: {_some(wrong)}"
        )
    if entry.removed != removed:
        wrong = sorted(entry.removed ^ removed)
        problems.append(
            f"{entry.name} does not remove what load {manifest.version} does: {_some(wrong)}"
        )
    if entry.positions != manifest.positions:
        problems.append(f"{entry.name} has other positions than the manifest of its load")
    return problems


def _of_live(
    kind: str, by_log: Mapping[str, LiveFile], by_chain: Mapping[str, DataFile]
) -> list[str]:
    problems = []
    for path, found in by_log.items():
        if found.problem:
            problems.append(f"{path} {found.problem}")
        file = by_chain.get(path)
        if file is None:
            continue
        if found.size_bytes != file.size_bytes or found.rows not in (None, file.rows):
            problems.append(
                f"{kind}'s log says that {path} has {found.rows} rows in {found.size_bytes} bytes, "
                f"and its manifest {file.rows} rows in {file.size_bytes} bytes"
            )
        if found.event not in (None, file.event):
            problems.append(
                f"{kind}'s log says that {path} is of {found.event}, and its manifest of "
                f"{file.event}: queries may pass over it"
            )
    return problems


def bounds_problems(
    kind: str, path: str, bounds: Mapping[str, tuple[int, int]], footer: FileStatistics
) -> list[str]:
    """Return the columns whose bounds in the log exclude values of the file, by its footer."""
    problems = []
    for name, (low, high) in bounds.items():
        found = footer.columns.get(name)
        if found is not None and not low <= found.low <= found.high <= high:
            problems.append(
                f"{kind}'s log says that {path} has {low} to {high} in column {name}, and the file "
                f"has {found.low} to {found.high}: queries may pass over it"
            )
    return problems


def _of_others(reading: LogReading, by_chain: Mapping[str, DataFile]) -> FilesOfOthers:
    foreign = [entry for entry in reading.entries if entry.load is None]
    known = {path for entry in foreign for path in (*entry.added, *entry.removed)}
    return FilesOfOthers(
        gone=[file for path, file in by_chain.items() if path not in reading.live],
        instead={
            path: reading.live[path] for path in sorted(reading.live.keys() - by_chain.keys())
        },
        by=[
            f"{entry.operation} ({entry.name})" for entry in foreign if entry.added or entry.removed
        ],
        known=frozenset({*known, *reading.live}),
    )


def _some(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _NAMED_MAX} more" if len(paths) > _NAMED_MAX else ""
    return ", ".join(paths[:_NAMED_MAX]) + more
