"""The seam *commit*: a table in which a load's files and positions become visible in one step.

The proof is the same for every format: a chain of sealed manifests, each with the digest of the
previous one. Formats differ in the step that makes a manifest effective.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Protocol

from ottla.base.errors import OttlaError
from ottla.lake.model.chain import EMPTY, TableStanding
from ottla.lake.model.event_times import ONE_BUCKET, Buckets
from ottla.lake.model.manifest import DataFile, Manifest
from ottla.lake.store.store import FileStore
from ottla.lake.tables.markers import RunningLoads

# Keys in Delta's commit information and in Iceberg's snapshots.
VERSION_KEY = "ottla.version"
DIGEST_KEY = "ottla.digest"
POSITIONS_KEY = "ottla.positions"


@dataclass(frozen=True, slots=True)
class NamedLoad:
    """The newest load that a log names; version 0 if none. `digest` may be only its beginning."""

    version: int = 0
    digest: str = ""
    problem: str | None = None  # Set if the log contradicts itself.

    def is_of(self, version: int, digest: str | None) -> bool:
        """Return whether this names the manifest with this version and digest."""
        return self.version == version and (digest or "").startswith(self.digest)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One commit in a log. `load` and the positions are None for commits of other programs."""

    name: str  # What messages call it.
    operation: str
    added: Mapping[str, int]  # Size in bytes by path.
    removed: AbstractSet[str]
    load: NamedLoad | None = None
    positions: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A file that is live in the log. `rows` is None if the log does not say."""

    path: str
    size_bytes: int
    rows: int | None
    # Lowest and highest value of columns in the log, as Parquet stores them. Engines skip files by
    # them.
    bounds: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    problem: str | None = None
    # The event-time bucket in the log; None: the log is not divided by event time.
    event: str | None = None


@dataclass(frozen=True, slots=True)
class LogReading:
    """The contents of a log. Entries are in order; the oldest may be gone."""

    newest: NamedLoad
    entries: Sequence[LogEntry]
    is_whole: bool  # Whether the first entry is the log's first.
    live: Mapping[str, LiveFile]
    problems: Sequence[str] = field(default=())
    is_shared: bool = False  # Whether other programs have their own rows in the table.


class TableLog(Protocol):
    """The log of one table, which need not exist before the first commit."""

    @property
    def kind(self) -> str:
        """The name of the format in messages: `Delta` or `Iceberg`."""

    def newest(self) -> NamedLoad:
        """Return the newest load that the log names."""

    def require_shared(self) -> None:
        """Raise OttlaError unless there is a table of another program that can be loaded into."""

    def live_paths(self) -> Sequence[str]:
        """Return the paths of the live files, in no order."""

    def read(self, columns: Any, buckets: Buckets = ONE_BUCKET) -> LogReading:
        """Read the whole log, to compare it with the manifests.

        `columns` is the Arrow schema of the newest load's files; `buckets` says how they are
        divided by event time.
        """

    def forget(self, oldest: int, *, dry_run: bool) -> AbstractSet[str]:
        """Drop the versions before our commit `oldest`, unless it is a `dry_run`.

        Returns paths of files that the log still needs. Raises OttlaError.
        """

    def must_rewrite(self, columns: Any) -> bool:
        """Return whether older files must be rewritten before files with `columns` are added.

        `columns` is an Arrow schema. Older files must be rewritten if a type is wider than the
        table's and the format has one type for all files.
        """

    def commit(self, manifest: Manifest, digest: str) -> bool:
        """Add and remove the files of `manifest`, and name it in the log, in one step.

        Returns True once the log names this manifest, even if an earlier answer was lost. Returns
        False if the log names another manifest of this version, or a later version. Creates the log
        if needed. Commits of other programs are no obstacle. Raises OttlaError.
        """


def positions_text(positions: Mapping[int, int]) -> str:
    """Return positions in the form of a log."""
    return json.dumps({str(partition): positions[partition] for partition in sorted(positions)})


def positions_of(text: str) -> dict[int, int]:
    """The inverse of `positions_text`. Raises ValueError, TypeError or AttributeError."""
    return {int(partition): int(offset) for partition, offset in json.loads(text).items()}


@dataclass(frozen=True, slots=True)
class ManifestLink:
    """A manifest of the chain, None if it cannot be read. `after` is the table's state after it."""

    name: str
    manifest: Manifest | None
    after: TableStanding
    problems: Sequence[str]


class LoadLost(OttlaError):
    """Raised if another load committed this version first; this load has changed nothing."""


class FencedWriter(OttlaError):
    """Raised if a writer with a higher writer epoch took the table over; this writer must stop."""


@dataclass(frozen=True, slots=True)
class FilesOfOthers:
    """Changes that other programs made to a table's files, according to the table's log."""

    # Files of loads that are no longer live; and live files, by path, that no load wrote.
    gone: Sequence[DataFile] = ()
    instead: Mapping[str, LiveFile] = field(default_factory=dict)
    # Description of the operations: "OPTIMIZE (Delta's log entry 7)".
    by: Sequence[str] = ()
    # All files that other programs wrote, live or not. They are not strays.
    known: AbstractSet[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Agreement:
    """Contradictions between a table format's log and the chain, and changes by other programs."""

    problems: Sequence[str] = ()
    others: FilesOfOthers = FilesOfOthers()
    # Lowest and highest values of columns in the log, for each live file of a load.
    bounds: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    # Parts of the log that could not be compared.
    remarks: Sequence[str] = ()
    # Whether other programs have their own rows in the table, for which no load accounts.
    is_shared: bool = False


class LakeTable(Protocol):
    """A table in `store`: its manifests and the files that they name."""

    @property
    def store(self) -> FileStore: ...

    @property
    def format(self) -> str:
        """`parquet`, `delta` or `iceberg`."""

    @property
    def running(self) -> RunningLoads: ...

    def latest(self) -> tuple[Manifest | None, str | None]:
        """Return the newest manifest and its digest, or (None, None) for an empty table.

        Its positions are those in the ledgers of all loads. Raises OttlaError if a manifest is
        missing, altered, or contradicts the others, because nothing may be built on it. A table
        that was opened for writing first completes a commit that a crash interrupted.
        """

    def history(self) -> Iterator[Manifest]:
        """Yield all manifests, oldest first. Raises OttlaError as `latest` does."""

    def links(self, since: TableStanding = EMPTY) -> Iterator[ManifestLink]:
        """Yield each manifest after `since` with its problems, oldest first.

        Missing manifests are yielded too, without a manifest; so are problems of the whole table.
        The iteration ends at a missing or unreadable manifest, because the state after it is
        unknown.
        """

    def live_files(self) -> Sequence[DataFile]:
        """Return the live files, in the order they were added. Raises as `latest` does."""

    def live_paths(self) -> Sequence[str]:
        """Return the paths that readers of the format see, including files of other programs."""

    def forget(self, oldest: int, *, dry_run: bool) -> AbstractSet[str]:
        """Drop the versions before `oldest` from the format's log, unless it is a `dry_run`.

        Returns paths of files that must stay: files of the remaining versions, and files that other
        programs have to remove.
        """

    def audit(self, chain: Sequence[tuple[Manifest, str | None]]) -> Agreement:
        """Compare the format's log with all manifests of the chain and their digests."""

    def file_stem(self, version: int, load_id: str, partition: int, start: int) -> str:
        """Return the start of the names of a range's files, relative to the store's root.

        A task attempt appends a hyphen, its own name, and `.parquet`.
        """

    def must_rewrite(self, columns: Any) -> bool:
        """Return whether all files must be rewritten before files with these Arrow `columns`."""

    def commit(self, manifest: Manifest) -> None:
        """Make the files and positions of `manifest` visible.

        Raises LoadLost if another commit has its version, and FencedWriter if the newest commit has
        a higher writer epoch. In both cases nothing has changed.
        """

    def remove_orphans(self) -> list[str]:
        """Delete files that no manifest can ever name; return their names.

        These are files of loads that have ended and whose version another load has taken.
        """
