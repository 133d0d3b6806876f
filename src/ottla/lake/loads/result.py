"""What a load did."""

from dataclasses import dataclass

from ottla.lake.manifest import Manifest
from ottla.ledger.partition import PartitionLedger, Unreadable


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load did. `manifest` is the newest: where nothing was new, an earlier load's."""

    manifest: Manifest | None
    rows: int
    files: int
    seconds: float
    ledgers: tuple[PartitionLedger, ...]
    removed: tuple[str, ...]  # Orphans of loads that never counted.
    skipped: tuple[Unreadable, ...] = ()  # What could not be read, with `skip_unreadable`.
    # A line for each partition whose end an open transaction holds back: what is behind waits.
    held_back: tuple[str, ...] = ()
