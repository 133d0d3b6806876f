"""Finds tombstones that compaction may have removed before a changelog table read them.

Compaction removes a tombstone once `delete.retention.ms` has passed since its first pass over it.
If a table has not read the tombstone by then, it keeps the row of a key that was deleted. It is
known when each compaction pass ran, but not which records it removed.
"""

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace

from ottla.base.errors import ErrorCode
from ottla.client.common.offset_account import CompactedBy
from ottla.lake.model.plan import Range, RecordsLost
from ottla.lake.source.access import Bootstrap
from ottla.lake.source.cluster import Cluster, TopicBounds, connect
from ottla.lake.source.ledgers import account_of
from ottla.lake.write.load_plan import LoadPlan
from ottla.lake.write.settings import ACCEPT_LOSS
from ottla.ledger.partition import PartitionLedger

_REMEDY = (
    "The table would keep rows that the topic has deleted. Nothing was committed. Read the log "
    "again from its start: `ottla lake changelog --reconcile` (changelog(…, reconcile=True)); or "
    f"keep such rows: {ACCEPT_LOSS}. A larger delete.retention.ms leaves more "
    "time between two runs"
)


def require_no_lost_deletions(
    plan: LoadPlan, ledgers: Iterable[PartitionLedger], bootstrap: Bootstrap
) -> None:
    """Raise RecordsLost if compaction may have removed a tombstone that was not read."""
    before, described = plan.before, plan.described
    retention_ms = described.delete_retention_ms
    if before is None or described.at_ms - before.created_ms < retention_ms:
        return
    holed = [
        one for one in ledgers if one.compacted + one.absent and one.partition in before.positions
    ]
    if described.has_ledger and holed:
        with closing(connect(bootstrap)) as cluster:
            holed = [one for one in holed if _lost(one, described, before.created_ms, cluster)]
    if holed:
        lines = [
            f"{described.topic}-{one.partition}: {one.compacted + one.absent} of the offsets "
            f"{one.start} to {one.end} were compacted, and delete.retention.ms ({retention_ms:,} "
            f"ms) has passed since the table was at {one.start}: deletions may be among them"
            for one in holed
        ]
        raise RecordsLost(ErrorCode.OFFSET_OUT_OF_RANGE, f"{'; '.join(lines)}. {_REMEDY}")


def _lost(ledger: PartitionLedger, described: TopicBounds, since_ms: int, cluster: Cluster) -> bool:
    whole = Range(described.topic, ledger.partition, 0, ledger.end)
    of_whole = account_of(cluster, whole)
    unread = account_of(cluster, replace(whole, start=ledger.start))
    if of_whole is None or unread is None:
        return True
    return may_have_removed(
        of_whole.compacted_by, unread.compacted_by, since_ms, described.delete_retention_ms
    )


def may_have_removed(
    whole: Sequence[CompactedBy], unread: Sequence[CompactedBy], since_ms: int, retention_ms: int
) -> bool:
    """Return whether passes over `unread` may have removed tombstones written after `since_ms`.

    The first pass over a tombstone removes the record that it deletes, so this pass is in `whole`,
    the passes over the whole log. Only a pass at least `retention_ms` later removes the tombstone.
    If the ledger counts several passes together, the first may have run right after `since_ms`.
    """
    later = [one for one in whole if one.at_ms >= since_ms]
    firsts = [(one.since, one.at_ms if one.since == one.number > 0 else since_ms) for one in later]
    return any(
        one.number <= 0 or (one.number > number and one.at_ms - at_ms >= retention_ms)
        for one in unread
        for number, at_ms in firsts
    )
