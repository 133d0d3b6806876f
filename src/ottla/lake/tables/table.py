"""The seam *commit*: a table in which a load's files and positions become visible in one step.

The proof is the same for every format: a chain of sealed manifests, each with the digest of the
previous one. Formats differ in the step that makes a manifest effective.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Protocol

from ottla.base.errors import OttlaError
from ottla.lake.model.chain import EMPTY, TableStanding
from ottla.lake.model.log_entry import LiveFile
from ottla.lake.model.manifest import DataFile, Manifest
from ottla.lake.store.store import FileStore
from ottla.lake.tables.temporary_folder import RunningLoads


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
