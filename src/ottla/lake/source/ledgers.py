"""Explains missing offsets: by the brokers' ledger, or by the log itself.

Apache Kafka keeps no ledger of offsets, and a topic's cleanup policy only says whether it is
compacted now. So the log itself has to show that it was ever compacted. Each of these proves it:

- a batch has fewer records than offsets;
- two adjacent batches in one fetch response leave a gap between their offsets. Damage cannot cause
  this, because a response is a piece of the log file, and both checksums are right;
- the first batch begins above the log start offset, and fetches at offsets in between return the
  same batch. After a damaged header they would not, as each offset is looked up in the index.

A gap between two responses proves nothing, because Kafka may skip the rest of a damaged segment.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.common.offset_account import OffsetAccount
from ottla.lake.model.manifest import Manifest
from ottla.lake.model.plan import PartitionBounds, Range
from ottla.lake.source.access import Bootstrap, as_brokers
from ottla.lake.source.cluster import Cluster, Log, TopicBounds
from ottla.ledger.partition import LedgerTotals, PartitionLedger, Unreadable
from ottla.record.reader import CorruptBatch, batches, check_batch


def was_compacted(log: Log, topic: str, partition: int, bound: PartitionBounds) -> bool:
    """Return whether the log, within `bound`, shows that it was ever compacted.

    It may read the whole log, so it is only called if offsets are missing.
    """
    wanted = Range(topic, partition, bound.log_start, bound.end)
    return _starts_above(log, wanted) or _has_gaps(log, wanted)


def judged(
    ledgers: Sequence[PartitionLedger], cluster: Cluster, topic: str
) -> list[PartitionLedger]:
    """Return the ledgers; absent offsets stay explained only if the log was ever compacted.

    Otherwise they become unexplained.
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
    described: TopicBounds,
    partition: int,
    found: OffsetAccount | None,
    count: int,
) -> bool:
    """Return whether compaction can explain `count` rows that only the lake still has."""
    if count == 0:
        return True
    if found is not None:
        return count <= found.compacted
    bound = described.bounds[partition]
    return described.compacted or was_compacted(cluster, described.topic, partition, bound)


def _starts_above(log: Log, wanted: Range) -> bool:
    """Return whether the first batch is above the log start, as a compaction leaves it.

    Then a fetch at any offset below that batch returns that batch.
    """
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
        # The log is damaged at this offset, or retention has deleted it.
        if error.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.OFFSET_OUT_OF_RANGE):
            return None
        raise


def _has_gaps(log: Log, wanted: Range) -> bool:
    """Return whether a batch, or two adjacent batches of one response, have a gap in offsets."""
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
    ledgers: Sequence[PartitionLedger], cluster: Cluster, described: TopicBounds
) -> list[PartitionLedger]:
    """Return the ledgers of ranges that were read, with missing offsets explained if possible."""
    if not described.has_ledger:
        return judged(ledgers, cluster, described.topic)
    found = []
    for ledger in ledgers:
        wanted = Range(described.topic, ledger.partition, ledger.start, ledger.end)
        account = account_of(cluster, wanted)
        if account is not None:
            found.append(ledger.settled(totals_of(account)))
        else:
            # Without the broker's account, missing offsets are explained only by compaction.
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
    """Return a line for each partition that names its unreadable offsets and the causes."""
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
    """Commit the table's positions as the group's offsets, which retention may wait for.

    If this fails, the load is in the table all the same, and the next load commits the offsets.
    Raises OttlaError.
    """
    offsets = {TopicPartition(manifest.topic, p): o for p, o in manifest.positions.items()}
    with as_brokers(bootstrap).admin() as admin:
        admin.groups.set_offsets(group, offsets)


def totals_of(account: OffsetAccount) -> LedgerTotals:
    """Return the totals of a broker's account, as a manifest stores them."""
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
    """Return text that names the elections in which offsets were lost; empty if there are none."""
    return ", ".join(
        f"{one.start} to {one.end} were lost with the election of leader epoch {one.leader_epoch}"
        for one in account.lost_by
    )


@contextmanager
def loss_explained(
    cluster: Cluster, described: TopicBounds, before: Manifest | None
) -> Iterator[None]:
    """Add elections that lost records to the error for a log that ends before the position."""
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
        return ""  # No broker has an account of these offsets yet.
    found = _elections(account)
    return f"Offsets of {topic}-{partition}: {found}" if found else ""


def elections_at(account: OffsetAccount, offsets: Sequence[int]) -> str:
    """Return text that names the elections by which records at `offsets` may have changed."""
    relevant = [one for one in account.lost_by if any(one.start <= o < one.end for o in offsets)]
    return _elections(replace(account, lost_by=tuple(relevant)))
