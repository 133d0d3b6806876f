"""Converts the ledger entries that leaders and followers exchange in fetches."""

from ottla.broker.partitions.partition import Partition
from ottla.ledger.history import Gone, Loss, StartCause
from ottla.wire.messages.fetch import DeletedOffsets, LostOffsets, PartitionData


def lost_offsets_of(partition: Partition) -> list[LostOffsets]:
    """Return the committed offsets that this replica truncated, to report them to the leader."""
    return [
        LostOffsets(
            start=loss.start, end=loss.end, leader_epoch=loss.leader_epoch, at_ms=loss.at_ms
        )
        for loss in partition.log.ledger.history.lost
    ]


def learn_lost(partition: Partition, reported: list[LostOffsets]) -> None:
    """Enter into the ledger the offsets that a follower reports as lost."""
    history = partition.log.ledger.history
    for loss in reported:
        history.lose(Loss(loss.start, loss.end, loss.leader_epoch, loss.at_ms))


def attach_ledger(partition: Partition, data: PartitionData, follower_start: int) -> None:
    """Add to an answer the ledger entries for deletions before the leader's log start offset.

    `follower_start` is the follower's log start offset; it has its own entries for lower offsets.
    """
    history, start = partition.log.ledger.history, partition.log_start_offset
    data.compacted_below = history.compacted_below
    if follower_start < start:
        data.deleted = [
            _deleted_offsets(one) for one in history.entries(max(0, follower_start), start)
        ]


def _deleted_offsets(one: Gone) -> DeletedOffsets:
    return DeletedOffsets(
        start=one.start,
        end=one.end,
        first_ms=one.first_ms,
        last_ms=one.last_ms,
        causes=[int(cause) for cause in one.counts],
        counts=list(one.counts.values()),
    )


def gone_of(reported: DeletedOffsets) -> Gone:
    """Convert a deletion that the leader reports to a ledger entry."""
    known = {int(cause) for cause in StartCause}
    counts: dict[StartCause, int] = {}
    for number, count in zip(reported.causes, reported.counts, strict=True):
        cause = StartCause(number) if number in known else StartCause.LEADER
        counts[cause] = counts.get(cause, 0) + count
    return Gone(reported.start, reported.end, counts, reported.first_ms, reported.last_ms)
