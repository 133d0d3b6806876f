"""The seam *commit*: a table in which a load's files and positions become visible in one step.

The proof is the same for every format: a chain of sealed manifests, each with the digest of the
one before. Formats differ in what makes a manifest count.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Protocol

from ottla.base.errors import OttlaError
from ottla.lake.log.chain import EMPTY, TableStanding
from ottla.lake.manifest import DataFile, Manifest
from ottla.lake.stores.store import FileStore
from ottla.lake.tables.log import LiveFile
from ottla.lake.tables.running import RunningLoads


@dataclass(frozen=True, slots=True)
class ManifestLink:
    """A manifest of the chain: None where it can't be had. `after` is where the table stands."""

    name: str
    manifest: Manifest | None
    after: TableStanding
    problems: Sequence[str]


class LoadLost(OttlaError):
    """Another load committed this version first; this one has changed nothing."""


class FencedWriter(OttlaError):
    """A writer with a higher writer epoch has taken the table over; this one must stop."""


@dataclass(frozen=True, slots=True)
class FilesOfOthers:
    """What other programs did to a table's files, as its log has it."""

    # Files of loads that count no more, and files by path that count and are of no load.
    gone: Sequence[DataFile] = ()
    instead: Mapping[str, LiveFile] = field(default_factory=dict)
    # Who did it, in words: "OPTIMIZE (Delta's log entry 7)".
    by: Sequence[str] = ()
    # Files that others wrote, whether they count or not: no strays.
    known: AbstractSet[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Agreement:
    """What in the log of a table format contradicts the chain, and what other programs did."""

    problems: Sequence[str] = ()
    others: FilesOfOthers = FilesOfOthers()
    # By the log, of each file of a load that counts: least and greatest value of columns.
    bounds: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    # What could not be compared.
    remarks: Sequence[str] = ()
    # Whether others have rows of their own in the table, which no load accounts for.
    is_shared: bool = False


class LakeTable(Protocol):
    """One table: its manifests, and the files that they name, in `store`."""

    @property
    def store(self) -> FileStore: ...

    @property
    def format(self) -> str:
        """`parquet`, `delta` or `iceberg`."""

    @property
    def running(self) -> RunningLoads: ...

    def latest(self) -> tuple[Manifest | None, str | None]:
        """Return the newest manifest and its digest, or (None, None) for an empty table.

        Its positions are those that the ledgers of all loads give. Raises OttlaError where a
        manifest is missing, altered, or contradicts the others: nothing may be built on that.
        Of a table that was opened to write, what a crash left undone is done.
        """

    def history(self) -> Iterator[Manifest]:
        """Yield all manifests, oldest first. Raises OttlaError as `latest` does."""

    def links(self, since: TableStanding = EMPTY) -> Iterator[ManifestLink]:
        """Yield each manifest behind `since` with what is wrong with it, oldest first.

        Ends at one that is missing or unreadable: what follows from it is not known. Each missing
        one is yielded, without a manifest; so is what is wrong with the table as a whole.
        """

    def live_files(self) -> Sequence[DataFile]:
        """The files that count now, in the order they were added. Raises as `latest` does."""

    def live_paths(self) -> Sequence[str]:
        """Paths of the files that readers of the format see: also files that others replaced."""

    def forget(self, oldest: int, *, dry_run: bool) -> AbstractSet[str]:
        """Let go of the versions before `oldest`, as the format does it, unless it is a `dry_run`.

        Returns paths of files that have to stay: those of the versions which stay, and those that
        are for other programs to remove.
        """

    def audit(self, chain: Sequence[tuple[Manifest, str | None]]) -> Agreement:
        """Compare the format's log with all manifests of the chain and their digests."""

    def file_stem(self, version: int, load_id: str, partition: int, start: int) -> str:
        """What the names of a range's files start with, relative to the store's root.

        A task attempt adds a hyphen, a name of its own, and `.parquet`.
        """

    def must_rewrite(self, columns: Any) -> bool:
        """Whether all files have to be written anew for others with `columns`, an Arrow schema."""

    def commit(self, manifest: Manifest) -> None:
        """Make what `manifest` names visible.

        Raises LoadLost where another commit has its version, and FencedWriter where the newest
        commit has a higher writer epoch. Neither has changed anything.
        """

    def remove_orphans(self) -> list[str]:
        """Delete files that no manifest can ever name; return their names.

        Those are files of loads whose version another load has taken, and which run no more.
        """
