"""Problems in a chain of manifests that an operator has overridden, on record for good.

A load refuses to build on manifests that contradict each other, unless the operator overrides that.
Then its manifest names the problems, and from then on they count as overridden: each verification
reports them, and no later load fails because of them.

A manifest that is missing or unreadable cannot be overridden, because positions and sums after it
are unknown.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ottla.lake.model.chain import TableStanding
from ottla.lake.model.manifest import Manifest
from ottla.lake.tables.table import LakeTable, ManifestLink


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
