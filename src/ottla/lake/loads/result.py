"""The result of a load."""

from dataclasses import dataclass

from ottla.lake.manifest import Manifest
from ottla.ledger.partition import PartitionLedger, Unreadable


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The result of a load. `manifest` is the newest one, of an earlier load if nothing was new."""

    manifest: Manifest | None
    rows: int
    files: int
    seconds: float
    ledgers: tuple[PartitionLedger, ...]
    removed: tuple[str, ...]  # Orphaned files of loads that were never committed.
    skipped: tuple[Unreadable, ...] = ()  # Offset ranges that could not be read and were skipped.
    # A line for each partition where an open transaction keeps later records from being loaded.
    held_back: tuple[str, ...] = ()
