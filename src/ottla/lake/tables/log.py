"""The log of a table format, Delta's or Iceberg's: it decides which of our manifests count.

Each commit of ours in such a log names a manifest by its version and its digest, and repeats the
positions. Other programs may commit between ours: what they did to files is read as well.
"""

import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Protocol

from ottla.lake.events.buckets import ONE_BUCKET, Buckets
from ottla.lake.manifest import Manifest

# Under these names, in Delta's commit information and in Iceberg's snapshots.
VERSION_KEY = "ottla.version"
DIGEST_KEY = "ottla.digest"
POSITIONS_KEY = "ottla.positions"


@dataclass(frozen=True, slots=True)
class NamedLoad:
    """The newest load that a log names: 0 for none. `digest` may be the beginning of one."""

    version: int = 0
    digest: str = ""
    problem: str | None = None  # Set where the log contradicts itself.

    def is_of(self, version: int, digest: str | None) -> bool:
        """Whether the manifest of this version with this digest is meant."""
        return self.version == version and (digest or "").startswith(self.digest)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One commit in a log. `load` is None, and so are the positions, for those of others."""

    name: str  # What to call it in messages.
    operation: str
    added: Mapping[str, int]  # Sizes in bytes by path.
    removed: AbstractSet[str]
    load: NamedLoad | None = None
    positions: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A file that counts by the log. `rows` is None where the log does not say."""

    path: str
    size_bytes: int
    rows: int | None
    # Least and greatest value of columns by the log, as Parquet stores them: engines skip by them.
    bounds: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    problem: str | None = None
    # The bucket of event time by the log; None: the log keeps none apart.
    event: str | None = None


@dataclass(frozen=True, slots=True)
class LogReading:
    """All that a log holds by now. Entries are in order; the oldest may be gone."""

    newest: NamedLoad
    entries: Sequence[LogEntry]
    is_whole: bool  # Whether the first entry is the log's first.
    live: Mapping[str, LiveFile]
    problems: Sequence[str] = field(default=())
    is_shared: bool = False  # Whether others have rows of their own in the table.


class TableLog(Protocol):
    """The log of one table, which need not exist before the first commit."""

    @property
    def kind(self) -> str:
        """How to call the format in messages: `Delta` or `Iceberg`."""

    def newest(self) -> NamedLoad:
        """Return the newest load that the log names."""

    def require_shared(self) -> None:
        """Raise OttlaError where no table that others made is there, or none to load into."""

    def live_paths(self) -> Sequence[str]:
        """Paths of the files that count, in no order."""

    def read(self, columns: Any, buckets: Buckets = ONE_BUCKET) -> LogReading:
        """Read all that there is, to compare it with the manifests.

        `columns` is the Arrow schema of the files that the newest load wrote, which `buckets` keep
        apart.
        """

    def forget(self, oldest: int, *, dry_run: bool) -> AbstractSet[str]:
        """Drop the versions before that of our commit `oldest`, unless it is a `dry_run`.

        Returns paths of files that have to stay by the log. Raises OttlaError.
        """

    def must_rewrite(self, columns: Any) -> bool:
        """Whether files with `columns`, an Arrow schema, can stand beside no older ones.

        So it is where a type is wider than the table's, and the format has one for all files.
        """

    def commit(self, manifest: Manifest, digest: str) -> bool:
        """Add and remove the files of `manifest` and name it, in one step.

        Returns True once the log names this manifest, also where an earlier answer was lost, and
        False where it names another of this version or a later one. Makes the log where there is
        none. Commits of others are no obstacle. Raises OttlaError.
        """


def positions_text(positions: Mapping[int, int]) -> str:
    """Positions as they stand in a log."""
    return json.dumps({str(partition): positions[partition] for partition in sorted(positions)})


def positions_of(text: str) -> dict[int, int]:
    """The inverse of `positions_text`. Raises ValueError, TypeError or AttributeError."""
    return {int(partition): int(offset) for partition, offset in json.loads(text).items()}
