"""Explains missing offsets: by the brokers' ledger, or by the log itself.

Apache Kafka keeps no ledger of offsets, and a topic's policy only says whether it is compacted now.
So the log itself has to show the gaps that a compaction left:

- a batch with fewer records than its header spans;
- two adjacent batches in one answer whose offsets do not touch. Damage cannot make
  that, since an answer is a piece of the log's file, and both checksums are right;
- a log whose first batch begins above its start, where the leader returns nothing else, asked again
  for offsets in between. After a damaged header it would: each offset is looked up in the index.

A gap between two answers proves nothing: Kafka may silently skip the rest of a damaged segment.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client import sync
from ottla.client.common.offset_account import OffsetAccount
from ottla.lake.model.manifest import Manifest
from ottla.lake.model.plan import PartitionBounds, Range
from ottla.lake.source.access import Bootstrap, as_brokers
from ottla.lake.source.cluster import Cluster, Log, TopicDescription
from ottla.ledger.partition import LedgerTotals, PartitionLedger, Unreadable
from ottla.record.reader import CorruptBatch, batches, check_batch


def was_compacted(log: Log, topic: str, partition: int, bound: PartitionBounds) -> bool:
    """Return whether the log, within `bound`, shows that it was ever compacted.

    Costs a pass over the log at worst, so it is only called if offsets are absent.
    """
    wanted = Range(topic, partition, bound.log_start, bound.end)
    return _starts_above(log, wanted) or _has_gaps(log, wanted)


def judged(
    ledgers: Sequence[PartitionLedger], cluster: Cluster, topic: str
) -> list[PartitionLedger]:
    """Return the ledgers, with absent offsets explained only if the log was ever compacted.

    Otherwise these offsets are unexplained.
    """
    if not any(ledger.absent for ledger in ledgers):
        return list(ledgers)
    bounds = cluster.describe(topic).bounds
    return [
        ledger
        if not ledger.absent
        or was_compacted(cluster, topic, ledger.partition, bounds[ledger.partition])
        else replace(ledger, absent=0)
        for ledger in ledgers
    ]


def may_be_compacted(
    cluster: Cluster,
    described: TopicDescription,
    partition: int,
    found: OffsetAccount | None,
    count: int,
) -> bool:
    """Return whether compaction can explain that `count` rows are in the lake only."""
    if count == 0:
        return True
    if found is not None:
        return count <= found.compacted
    bound = described.bounds[partition]
    return described.compacted or was_compacted(cluster, described.topic, partition, bound)


def _starts_above(log: Log, wanted: Range) -> bool:
    """Return whether every offset below the first batch leads the leader to that batch."""
    first = _base_at(log, wanted, wanted.start)
    if first is None or first <= wanted.start:
        return False
    distance = 1
    while first - distance > wanted.start:
        if _base_at(log, wanted, first - distance) != first:
            return False
        distance *= 2
    return True


def _base_at(log: Log, wanted: Range, offset: int) -> int | None:
    try:
        buffer = log.peek(wanted.topic, wanted.partition, offset)
        return next((header.base_offset for _, header in batches(buffer)), None)
    except OttlaError as error:
        # The log is damaged there, or retention has moved past.
        if error.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.OFFSET_OUT_OF_RANGE):
            return None
        raise


def _has_gaps(log: Log, wanted: Range) -> bool:
    """Return whether there is a gap in a batch, or between two adjacent batches of an answer."""
    try:
        with closing(log.fetch(wanted)) as answers:
            return any(_answer_has_gaps(answer.buffer) for answer in answers)
    except CorruptBatch:
        return False


def _answer_has_gaps(buffer: bytes) -> bool:
    expected = None
    for position, header in batches(buffer):
        check_batch(buffer, position, header)
        if header.record_count <= header.last_offset_delta:
            return True
        if expected is not None and header.base_offset > expected:
            return True
        expected = header.last_offset + 1
    return False


# How many damaged places are named one by one for each partition.
_NAMED_MAX = 10


def settled(
    ledgers: Sequence[PartitionLedger], cluster: Cluster, described: TopicDescription
) -> list[PartitionLedger]:
    """Return the ledgers of a load that was read, with gaps explained as far as possible."""
    if not described.has_ledger:
        return judged(ledgers, cluster, described.topic)
    found = []
    for ledger in ledgers:
        wanted = Range(described.topic, ledger.partition, ledger.start, ledger.end)
        account = account_of(cluster, wanted)
        if account is not None:
            found.append(ledger.settled(totals_of(account)))
        else:
            # Without the broker's account, holes are accepted only if the topic is compacted.
            found.append(ledger if described.compacted else replace(ledger, compacted=0))
    return found


def account_of(cluster: Cluster, wanted: Range) -> OffsetAccount | None:
    """Return the broker's account of a range; None if its log is too damaged to read."""
    try:
        return cluster.account(wanted)
    except OttlaError as error:
        if error.code is ErrorCode.CORRUPT_MESSAGE:
            return None
        raise


def skipped_lines(topic: str, skipped: Iterable[Unreadable]) -> list[str]:
    """Return one line for each partition: which offsets could not be read, and why."""
    by_partition: dict[int, list[Unreadable]] = {}
    for one in skipped:
        by_partition.setdefault(one.partition, []).append(one)
    lines = []
    for partition, found in sorted(by_partition.items()):
        count = sum(one.end - one.start for one in found)
        named = [f"{one.start} to {one.end} ({one.cause})" for one in found[:_NAMED_MAX]]
        if len(found) > _NAMED_MAX:
            named.append(f"and {len(found) - _NAMED_MAX} more")
        lines.append(f"{topic}-{partition}: {count} unreadable offsets: {'; '.join(named)}")
    return lines


def commit_positions(group: str, manifest: Manifest, bootstrap: Bootstrap) -> None:
    """Commit the table's positions for a group, which retention may wait for.

    If this fails the load is still in the table, and the next load commits again. Raises
    OttlaError.
    """
    offsets = {TopicPartition(manifest.topic, p): o for p, o in manifest.positions.items()}
    brokers = as_brokers(bootstrap)
    with sync.Admin(brokers.bootstrap, config=brokers.access.client_config()) as admin:
        admin.groups.set_offsets(group, offsets)


def totals_of(account: OffsetAccount) -> LedgerTotals:
    """Return a broker's account in the form of a manifest."""
    return LedgerTotals(
        data=account.data + account.undecided,
        control=account.control,
        aborted=account.aborted,
        compacted=account.compacted,
        deleted=account.deleted,
        lost=account.lost,
        unexplained=account.unexplained,
    )


def _elections(account: OffsetAccount) -> str:
    """Return a description of the elections that lost offsets; empty if there were none."""
    return ", ".join(
        f"{one.start} to {one.end} were lost with the election of leader epoch {one.leader_epoch}"
        for one in account.lost_by
    )


@contextmanager
def loss_explained(
    cluster: Cluster, described: TopicDescription, before: Manifest | None
) -> Iterator[None]:
    """Add the brokers' ledger to the error for a log that ends before the table's position."""
    try:
        yield
    except OttlaError as error:
        if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE or not described.has_ledger:
            raise
        assert before is not None
        words = []
        for partition, position in before.positions.items():
            bound = described.bounds.get(partition)
            if bound is not None and bound.end < position:
                words.append(_loss(cluster, described.topic, partition, bound.end, position))
        raise OttlaError(error.code, ". ".join([error.message, *filter(None, words)])) from error


def _loss(cluster: Cluster, topic: str, partition: int, end: int, position: int) -> str:
    try:
        account = cluster.account(Range(topic, partition, end, position))
    except OttlaError:
        return ""  # The replica that had them is not back, so no ledger has them yet.
    found = _elections(account)
    return f"Offsets of {topic}-{partition}: {found}" if found else ""


def elections_at(account: OffsetAccount, offsets: Sequence[int]) -> str:
    """Return which elections explain that other records than were loaded are at `offsets`."""
    relevant = [one for one in account.lost_by if any(one.start <= o < one.end for o in offsets)]
    return _elections(replace(account, lost_by=tuple(relevant)))
