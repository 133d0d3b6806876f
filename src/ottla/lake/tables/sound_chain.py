"""Problems in a chain of manifests that an operator has overridden, on record for good.

A load refuses to build on manifests that contradict each other, unless the operator overrides that.
Then its manifest names the problems, and from then on they count as overridden: each verification
reports them, and no later load fails because of them.

A manifest that is missing or unreadable cannot be overridden, because positions and sums after it
are unknown.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.chain import EMPTY, TableStanding
from ottla.lake.model.live import live_after
from ottla.lake.model.manifest import DataFile, Manifest
from ottla.lake.tables.commit import committed_before
from ottla.lake.tables.markers import Heads, TableCheckpoints
from ottla.lake.tables.table import FencedWriter, LakeTable, LoadLost, ManifestLink


@dataclass(frozen=True, slots=True)
class Foundation:
    """The state that a load builds on in spite of `problems`.

    If the newest manifest's positions and sums differ from those derived from the ledgers and
    files, `newest` has the derived ones.
    """

    newest: Manifest | None
    digest: str | None
    problems: tuple[str, ...] = ()


def without_overridden(links: Iterable[ManifestLink]) -> Iterator[ManifestLink]:
    """Yield the links without problems that a later manifest records as overridden."""
    known = list(links)
    overridden = {one for link in known if link.manifest for one in link.manifest.overridden}
    for link in known:
        left = [problem for problem in link.problems if problem not in overridden]
        # A missing manifest can have nothing overridden.
        yield replace(link, problems=left) if link.manifest is not None else link


def overridden_by(manifests: Iterable[Manifest]) -> list[str]:
    """Return all overridden problems with the commit that recorded them, oldest first."""
    return [
        f"{one} (overridden by {manifest.kind} {manifest.version})"
        for manifest in manifests
        for one in manifest.overridden
    ]


def foundation(table: LakeTable) -> Foundation | None:
    """Return the table's state with the problems that are not on record yet.

    None if a manifest is missing or unreadable.
    """
    newest, standing, problems = None, TableStanding(), list[str]()
    for link in without_overridden(table.links()):
        if link.manifest is None:
            return None
        newest, standing = link.manifest, link.after
        problems += link.problems
    if newest is None:
        return Foundation(None, None)
    return Foundation(_corrected(newest, standing), standing.digest, tuple(problems))


def _corrected(newest: Manifest, standing: TableStanding) -> Manifest:
    return replace(
        newest,
        version=standing.version,
        positions=standing.positions,
        total_rows=standing.total_rows,
        total_hash=standing.total_hash,
        writer_epoch=standing.writer_epoch,
    )


def on_record(problems: Sequence[str], reason: str) -> tuple[str, ...]:
    """Return what a manifest records as overridden: the problems and the operator's reason."""
    return (*problems, f"reason: {reason}") if problems else ()


Links = Callable[[TableStanding], Iterator[ManifestLink]]
# Finds the manifest that a checkpoint was made of, with its digest; None if it is missing.
Find = Callable[[TableStanding], tuple[Manifest, str] | None]


class SoundChain:
    """The chain of the table at `place`, as read by `links` and `find`.

    Errors put `called` before a link's name.
    """

    def __init__(
        self,
        place: str,
        heads: Heads,
        checkpoints: TableCheckpoints,
        links: Links,
        find: Find,
        called: str,
    ) -> None:
        self._place = place
        self._heads = heads
        self._checkpoints = checkpoints
        self._links = links
        self._find = find
        self._called = called

    def latest(self, *, repairs_head: bool) -> tuple[Manifest | None, str | None]:
        """Do as `LakeTable.latest`. If `repairs_head`, write a head marker lost in a crash."""
        newest, standing = self.newest()
        if repairs_head:
            head = self._heads.newest()
            if head is None or head.version < standing.version:
                self._heads.write(standing.version, standing.digest)
        return newest, standing.digest

    def newest(self) -> tuple[Manifest | None, TableStanding]:
        """Return the newest manifest and the table's state, from the newest checkpoint on.

        Raises OttlaError if the chain has a problem.
        """
        newest, standing = self._by_checkpoint()
        for link in without_overridden(self._links(standing)):
            newest, standing = self._sound(link), link.after
        return newest, standing

    def history(self) -> Iterator[Manifest]:
        """Yield all manifests, oldest first. Raises OttlaError as `newest` does."""
        return map(self._sound, without_overridden(self._links(EMPTY)))

    def live_files(self) -> Sequence[DataFile]:
        """Return the live files, in the order they were added. Raises as `newest` does."""
        live: dict[str, DataFile] = {}
        for link in without_overridden(self._links(EMPTY)):
            problems = live_after(live, self._sound(link))
            if problems:
                raise self.damaged(f"{self._called} {link.name}: {problems[0]}")
        return list(live.values())

    def committed(self, version: int, digest: str, on_step: Callable[[str], None]) -> None:
        """Record the commit of `version`: write the head marker, and a checkpoint if one is due."""
        with committed_before(self._place, version):
            self._heads.write(version, digest)
        on_step("head written")
        if self._checkpoints.is_due(version):
            # The load is committed already; the next load reports any failure here.
            with suppress(OSError, OttlaError):
                self._checkpoints.write(self.newest()[1])
        on_step("checkpoint written")

    def lost(self, manifest: Manifest) -> OttlaError:
        """Return the error for a commit whose version another commit has taken."""
        newest, _ = self.newest()
        if newest is not None and newest.writer_epoch > manifest.writer_epoch:
            return FencedWriter(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"a writer with epoch {newest.writer_epoch} has taken {self._place} over from "
                f"this one, which has epoch {manifest.writer_epoch} and changed nothing: see that "
                "only one long-running writer is started",
            )
        return LoadLost(
            ErrorCode.CONCURRENT_TRANSACTIONS,
            f"another load committed version {manifest.version} of {self._place} first; this "
            "one changed nothing: run it again to load what is new since",
        )

    def damaged(self, problems: str) -> OttlaError:
        """Return the error for a table that contradicts itself."""
        return OttlaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"the table in {self._place} is damaged: {problems}. Nothing is loaded on top of "
            "it: restore the file from a copy, or load into a new folder. Where all manifests are "
            "readable, `ottla lake load --override REASON` puts the problems on record and goes on",
        )

    def _by_checkpoint(self) -> tuple[Manifest | None, TableStanding]:
        for standing in self._checkpoints.newest_first():
            found = self._find(standing)
            if found is not None and standing.agrees_with(*found):
                return found[0], standing
        return None, EMPTY

    def _sound(self, link: ManifestLink) -> Manifest:
        if link.manifest is None or link.problems:
            raise self.damaged("; ".join(link.problems))
        return link.manifest
