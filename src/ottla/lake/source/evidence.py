"""Finds out from a partition's log whether it was ever compacted.

Apache Kafka keeps no ledger of offsets, and a topic's policy only says whether it is compacted now.
So the log itself has to show the gaps that a compaction left:

- a batch with fewer records than its header spans;
- two adjacent batches in one answer whose offsets do not touch. Damage cannot make
  that, since an answer is a piece of the log's file, and both checksums are right;
- a log whose first batch begins above its start, where the leader gives nothing else, asked again
  for offsets in between. Behind a damaged header it would: each offset is looked up in the index.

A gap between two answers proves nothing: Kafka may silently skip the rest of a damaged segment.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.ranges.account import OffsetAccount
from ottla.lake.model.plan import PartitionBounds, Range
from ottla.lake.source.source import Cluster, Reading, TopicDescription
from ottla.ledger.partition import PartitionLedger
from ottla.record.reader import CorruptBatch, batches, check_batch


def was_compacted(log: Reading, topic: str, partition: int, bound: PartitionBounds) -> bool:
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


def _starts_above(log: Reading, wanted: Range) -> bool:
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


def _base_at(log: Reading, wanted: Range, offset: int) -> int | None:
    try:
        buffer = log.peek(wanted.topic, wanted.partition, offset)
        return next((header.base_offset for _, header in batches(buffer)), None)
    except OttlaError as error:
        # The log is damaged there, or retention has moved past.
        if error.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.OFFSET_OUT_OF_RANGE):
            return None
        raise


def _has_gaps(log: Reading, wanted: Range) -> bool:
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
