"""The interface of tables: a load's files and positions become visible in one step.

The proof is the same for every format: a chain of sealed manifests, each with the digest of the
previous one. Formats differ in the step that makes a manifest effective. A table's current state
follows from its newest checkpoint and the manifests after it.

A load fails if manifests contradict each other, unless the operator overrides these problems. Then
the load's manifest records them as overridden: each verification reports them, and no later load
fails because of them. A missing or unreadable manifest cannot be overridden, because positions and
sums after it are unknown.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Self

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.chain import EMPTY, TableStanding
from ottla.lake.model.event_times import Buckets
from ottla.lake.model.live import live_after
from ottla.lake.model.manifest import DataFile, Manifest, to_bytes, unseal
from ottla.lake.store.errors import as_storage_error
from ottla.lake.store.store import FileStore
from ottla.lake.tables import data_files
from ottla.lake.tables.formats import MANIFESTS
from ottla.lake.tables.markers import Heads, RunningLoads, TableCheckpoints

# The name of the link with the problem of a table that was restored to an older version.
RESTORED = "restored"


@dataclass(frozen=True, slots=True)
class ManifestLink:
    """A link of the chain: a manifest, its problems, and the table's state `after` it.

    `manifest` is None if it cannot be read.
    """

    name: str
    manifest: Manifest | None
    after: TableStanding
    problems: Sequence[str]


class CommitConflict(OttlaError):
    """Raised if another load committed this version first; this load has changed nothing."""


class WriterFenced(OttlaError):
    """Raised if a writer with a higher writer epoch took the table over; this writer must stop."""


class CommittedThough(OttlaError):
    """Raised if a commit succeeded but a step after it failed. The next run completes the step."""


@contextmanager
def committed_before(place: str, version: int) -> Iterator[None]:
    """Convert errors of steps after a commit to CommittedThough, which names `version`."""
    try:
        with as_storage_error(place):
            yield
    except (CommitConflict, WriterFenced, CommittedThough):
        raise
    except OttlaError as error:
        raise CommittedThough(
            error.code,
            f"version {version} of {place} is committed and counts; what follows a commit failed, "
            f"which the next run does: {error.message}",
        ) from error


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A file that is live in the log. `rows` is None if the log does not have the row count."""

    path: str
    size_bytes: int
    rows: int | None
    # The lowest and highest value of each column in the log, as Parquet stores them. Query engines
    # use them to skip files.
    bounds: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    problem: str | None = None
    # The event-time bucket in the log; None if the log has no such buckets.
    event: str | None = None
    deleted: int = 0  # Rows of the file that its deletion vector removes.


@dataclass(frozen=True, slots=True)
class FilesOfOthers:
    """Changes that other programs made to a table's files, according to the table's log."""

    # `gone` are files of loads that are no longer live, `instead` live files that no load wrote.
    gone: Sequence[DataFile] = ()
    instead: Mapping[str, LiveFile] = field(default_factory=dict)
    # The operations, for example "OPTIMIZE (Delta's log entry 7)".
    by: Sequence[str] = ()
    # All files that other programs wrote, live or not. A check does not report them as strays.
    known: AbstractSet[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Agreement:
    """Contradictions between a table format's log and the chain, and changes by other programs."""

    problems: Sequence[str] = ()
    others: FilesOfOthers = FilesOfOthers()
    # The lowest and highest value of each column in the log, for each live file of a load.
    bounds: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    # Parts of the log that could not be compared.
    remarks: Sequence[str] = ()
    # Whether other programs have their own rows in the table, which no load wrote.
    is_shared: bool = False


class LakeTable(ABC):
    """A table in `store`: its manifests and the files that they name.

    `on_step` is called with the name of each completed step of a commit.
    """

    format = "parquet"  # `delta` or `iceberg` in subclasses.
    file_stem = staticmethod(data_files.file_stem)
    # The words before a link's name in errors.
    _link_kind = "the manifest"

    def __init__(self, store: FileStore, on_step: Callable[[str], None] = lambda _: None) -> None:
        self.store = store
        self.running = RunningLoads(store)
        self._heads = Heads(store)
        self._checkpoints = TableCheckpoints(store)
        self._on_step = on_step
        self._writes = False

    def writable(self) -> Self:
        """Create the folders and the first head marker of a new table, and return the table.

        From then on, `latest` also writes a head marker that was lost in a crash. Raises OttlaError
        if the store cannot keep two writers from creating the same file.
        """
        # Create the folder that marks a table of ottla first, in case of a crash half-way.
        self.store.prepare((MANIFESTS, data_files.FOLDER))
        self._heads.require_one(self._has_content)
        self._writes = True
        return self

    def latest(self) -> tuple[Manifest | None, str | None]:
        """Return the newest manifest and its digest, or (None, None) for an empty table.

        Raises OttlaError if a manifest is missing, altered, or contradicts the others, because
        nothing may be built on it. A writable table also writes a head marker that was lost in a
        crash.
        """
        newest, standing = self._newest()
        if self._writes:
            head = self._heads.newest()
            if head is None or head.version < standing.version:
                self._heads.write(standing.version, standing.digest)
        return newest, standing.digest

    def _newest(self) -> tuple[Manifest | None, TableStanding]:
        """Return the newest manifest and the table's state, with the help of checkpoints."""
        newest, standing = self._by_checkpoint()
        for link in without_overridden(self.links(standing)):
            newest, standing = self._sound(link), link.after
        return newest, standing

    def _by_checkpoint(self) -> tuple[Manifest | None, TableStanding]:
        for standing in self._checkpoints.newest_first():
            found = self._find(standing)
            if found is not None and standing.agrees_with(*found):
                return found[0], standing
        return None, EMPTY

    def _sound(self, link: ManifestLink) -> Manifest:
        if link.name == RESTORED:
            problem = f"nothing can be built on the table in {self.store.url}: {link.problems[0]}"
            raise OttlaError(ErrorCode.INVALID_REQUEST, problem)
        if link.manifest is None or link.problems:
            raise self._damaged("; ".join(link.problems))
        return link.manifest

    def history(self) -> Iterator[Manifest]:
        """Yield all manifests, oldest first. Raises OttlaError as `latest` does."""
        return map(self._sound, without_overridden(self.links()))

    def live_files(self) -> Sequence[DataFile]:
        """Return the live files, in the order they were added. Raises as `latest` does."""
        live: dict[str, DataFile] = {}
        for link in without_overridden(self.links()):
            problems = live_after(live, self._sound(link))
            if problems:
                raise self._damaged(f"{self._link_kind} {link.name}: {problems[0]}")
        return list(live.values())

    def live_paths(self) -> Sequence[str]:
        """Return the paths that readers of the format see, including files of other programs."""
        return [file.path for file in self.live_files()]

    @abstractmethod
    def links(self, since: TableStanding = EMPTY) -> Iterator[ManifestLink]:
        """Yield each manifest after `since` with its problems, oldest first.

        For a missing manifest, or a problem of the whole table, `manifest` of the link is None.
        Manifests after a missing or unreadable one are not yielded, because the table's state there
        is unknown.
        """

    def forget(self, oldest: int, *, dry_run: bool) -> AbstractSet[str]:  # noqa: ARG002  # Manifests stay.
        """Drop the versions before `oldest` from the format's log, unless it is a `dry_run`.

        Returns the paths of files that must stay: files of the remaining versions, and files that
        only other programs may remove.
        """
        return frozenset(self.live_paths())

    def audit(self, chain: Sequence[tuple[Manifest, str | None]]) -> Agreement:  # noqa: ARG002  # The chain is the log.
        """Compare the format's log with all manifests of the chain and their digests."""
        return Agreement()

    def require_fitting(self, columns: Any, buckets: Buckets) -> None:  # noqa: B027  # Nothing to fit.
        """Raise OttlaError if files with these Arrow columns do not fit a table of others."""

    def must_rewrite(self, columns: Any) -> bool:  # noqa: ARG002  # Each file has its own types.
        """Return whether all files must be rewritten before files with these Arrow `columns`."""
        return False

    def commit(self, manifest: Manifest) -> None:
        """Make the files and positions of `manifest` visible.

        Raises CommitConflict if another commit has its version, and WriterFenced if the newest
        commit has a higher writer epoch. In both cases nothing has changed.
        """
        content = to_bytes(manifest)
        version, digest = manifest.version, unseal(content)[1]
        if not self._made_visible(manifest, content, digest):
            raise self._lost(manifest)
        self._on_step("manifest written")
        with committed_before(self.store.url, version):
            self._heads.write(version, digest)
        self._on_step("head written")
        if self._checkpoints.is_due(version):
            # The load is committed already, and a checkpoint is optional, so errors are ignored.
            with suppress(OSError, OttlaError):
                self._checkpoints.write(self._newest()[1])
        self._on_step("checkpoint written")

    @abstractmethod
    def _made_visible(self, manifest: Manifest, content: bytes, digest: str) -> bool:
        """Make `manifest` effective; return False if another manifest has its version.

        `content` and `digest` are its stored form.

        Calls `on_step` with "manifest offered" before the step that may make it effective.
        """

    @abstractmethod
    def _find(self, standing: TableStanding) -> tuple[Manifest, str] | None:
        """Return the manifest of a checkpoint's version and its digest; None if it is missing."""

    @abstractmethod
    def _read(self, version: int) -> Manifest:
        """Return the manifest of a version. Raises OSError and OttlaError."""

    @abstractmethod
    def _has_content(self) -> bool:
        """Return whether the store has manifests or data files, written after the first head."""

    def remove_orphans(self) -> list[str]:
        """Delete files that no manifest can ever name; return their names.

        These are files of loads that have ended and whose version another load has taken.
        """
        return data_files.remove_orphans(self.store, self.running, self._loads, self._paths_named)

    def _loads(self) -> Sequence[str]:
        return self._newest()[1].loads.split()

    def _paths_named(self, version: int) -> set[str]:
        manifest = self._read(version)
        return {file.path for file in (*manifest.files, *manifest.dead_letters)}

    def _lost(self, manifest: Manifest) -> OttlaError:
        """Return the error for a commit whose version another commit has taken."""
        newest, _ = self._newest()
        place = self.store.url
        if newest is not None and newest.writer_epoch > manifest.writer_epoch:
            return WriterFenced(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"a writer with epoch {newest.writer_epoch} has taken {place} over from "
                f"this one, which has epoch {manifest.writer_epoch} and changed nothing: see that "
                "only one long-running writer is started",
            )
        return CommitConflict(
            ErrorCode.CONCURRENT_TRANSACTIONS,
            f"another load committed version {manifest.version} of {place} first; this "
            "one changed nothing: run it again to load what is new since",
        )

    def _damaged(self, problems: str) -> OttlaError:
        """Return the error for a table that contradicts itself."""
        return OttlaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"the table in {self.store.url} is damaged: {problems}. Nothing is loaded on top of "
            "it: restore the file from a copy, or load into a new folder. Where all manifests are "
            "readable, `ottla lake load --override REASON` puts the problems on record and goes on",
        )


def without_overridden(links: Iterable[ManifestLink]) -> Iterator[ManifestLink]:
    """Yield the links without problems that a later manifest records as overridden."""
    known = list(links)
    overridden = {one for link in known if link.manifest for one in link.manifest.overridden}
    for link in known:
        left = [problem for problem in link.problems if problem not in overridden]
        # A missing manifest cannot be overridden.
        yield replace(link, problems=left) if link.manifest is not None else link


def overridden_by(manifests: Iterable[Manifest]) -> list[str]:
    """Return all overridden problems, each with the commit that recorded it, oldest first."""
    return [
        f"{one} (overridden by {manifest.kind} {manifest.version})"
        for manifest in manifests
        for one in manifest.overridden
    ]


@dataclass(frozen=True, slots=True)
class Foundation:
    """The state that a load builds on in spite of `problems`.

    Positions and sums of `newest` are derived from the ledgers and files of all manifests, in case
    those in the newest manifest are wrong.
    """

    newest: Manifest | None
    digest: str | None
    problems: tuple[str, ...] = ()


def foundation(table: LakeTable) -> Foundation | None:
    """Return the table's state with the problems that no manifest records as overridden.

    Returns None if a manifest is missing or unreadable.
    """
    newest, standing, problems = None, TableStanding(), list[str]()
    for link in without_overridden(table.links()):
        if link.manifest is None:
            return None
        newest, standing = link.manifest, link.after
        problems += link.problems
    if newest is None:
        return Foundation(None, None)
    corrected = replace(
        newest,
        version=standing.version,
        positions=standing.positions,
        total_rows=standing.total_rows,
        total_hash=standing.total_hash,
        writer_epoch=standing.writer_epoch,
    )
    return Foundation(corrected, standing.digest, tuple(problems))


def on_record(problems: Sequence[str], reason: str) -> tuple[str, ...]:
    """Return what a manifest records as overridden: the problems and the operator's reason."""
    return (*problems, f"reason: {reason}") if problems else ()
