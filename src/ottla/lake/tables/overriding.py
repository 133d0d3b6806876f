"""Problems of a chain of manifests that an operator chose to build on: on record, and for good.

A load builds on nothing that contradicts itself, unless the operator says so. Then its manifest
names the problems that it found, and from then on they count as overridden: each verification
reports them, and no later load stops at them.

A manifest that is missing or unreadable can't be overridden: what follows from it is not known.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ottla.lake.log.chain import TableStanding
from ottla.lake.manifest import Manifest
from ottla.lake.tables.table import LakeTable, ManifestLink


@dataclass(frozen=True, slots=True)
class Foundation:
    """What a load builds on in spite of `problems`.

    Where the newest manifest says other positions and sums than the chain of ledgers and files
    gives, `newest` has those of the chain.
    """

    newest: Manifest | None
    digest: str | None
    problems: tuple[str, ...] = ()


def without_overridden(links: Iterable[ManifestLink]) -> Iterator[ManifestLink]:
    """Yield the links without the problems that a later manifest has on record as overridden."""
    known = list(links)
    overridden = {one for link in known if link.manifest for one in link.manifest.overridden}
    for link in known:
        left = [problem for problem in link.problems if problem not in overridden]
        # Of a manifest that is not there nothing can be overridden.
        yield replace(link, problems=left) if link.manifest is not None else link


def overridden_by(manifests: Iterable[Manifest]) -> list[str]:
    """What is on record as overridden, with the commit that did it, oldest first."""
    return [
        f"{one} (overridden by {manifest.kind} {manifest.version})"
        for manifest in manifests
        for one in manifest.overridden
    ]


def foundation(table: LakeTable) -> Foundation | None:
    """Where the table stands with the problems that are not yet on record.

    None where a manifest is missing or unreadable.
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
    """What a manifest names as overridden: the problems, and the operator's reason."""
    return (*problems, f"reason: {reason}") if problems else ()
