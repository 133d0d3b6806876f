"""The log of a table format (Delta or Iceberg), which decides which of our manifests count.

Each of our commits in the log names a manifest by version and digest, and repeats the positions.
Other programs may commit between ours; their changes to files are read as well.
"""

import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Protocol

from ottla.lake.model.buckets import ONE_BUCKET, Buckets
from ottla.lake.model.manifest import Manifest

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
