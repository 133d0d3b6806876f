"""The result of a load, and the ledgers of its tasks as one for each partition."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import reduce

from ottla.lake.job.load_task import TaskResult
from ottla.lake.model.manifest import Manifest
from ottla.lake.source.access import Bootstrap
from ottla.lake.source.cluster import TopicDescription, connect
from ottla.lake.source.ledgers import settled
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


def _partition_ledgers(results: Sequence[TaskResult]) -> list[PartitionLedger]:
    """Merge the ledgers of the ranges into one ledger for each partition."""
    by_partition: dict[int, list[PartitionLedger]] = {}
    for result in sorted(results, key=lambda r: (r.ledger.partition, r.ledger.start)):
        by_partition.setdefault(result.ledger.partition, []).append(result.ledger)
    return [reduce(PartitionLedger.followed_by, parts) for _, parts in sorted(by_partition.items())]


def explained_ledgers(
    results: Sequence[TaskResult], described: TopicDescription, bootstrap: Bootstrap
) -> list[PartitionLedger]:
    """Return a ledger for each partition that was read, with gaps explained as far as possible."""
    ledgers = _partition_ledgers(results)
    with closing(connect(bootstrap)) as cluster:
        return settled(ledgers, cluster, described)
