"""Loss: offsets that retention or a deletion took before they were loaded. Pure.

What was gone before a partition's first load was planned is none. What went later is: a table's
position, or the plan's look at the log, says that it was there to be loaded.
"""

from collections.abc import Iterable, Mapping

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.plan import PartitionBounds
from ottla.ledger.partition import PartitionLedger


class RecordsLost(OttlaError):
    """Records were deleted before they were loaded, and the loss was not accepted."""


def gone_before(
    bounds: Mapping[int, PartitionBounds], positions: Mapping[int, int]
) -> dict[int, int]:
    """The offset of each partition below which a deletion is no loss.

    That is the log's start when the load was planned, or the partition's position in the table.
    """
    return {p: positions.get(p, bound.log_start) for p, bound in bounds.items()}


def lost(ledger: PartitionLedger, gone_below: int) -> int:
    """How many of the ledger's deleted offsets are a loss. Deletions take a log's oldest."""
    return max(0, ledger.deleted - max(0, min(ledger.end, gone_below) - ledger.start))


def deleted_at(start: int, end: int, partition: int, bound: PartitionBounds) -> PartitionLedger:
    """What is known of a range before it is read: how much of it the log has lost already."""
    return PartitionLedger(partition, start, end, deleted=max(0, min(end, bound.log_start) - start))


def losses(
    ledgers: Iterable[PartitionLedger], gone_below: Mapping[int, int]
) -> dict[PartitionLedger, int]:
    """Ledgers with a loss, and how many offsets it is."""
    found = {ledger: lost(ledger, gone_below.get(ledger.partition, 0)) for ledger in ledgers}
    return {ledger: count for ledger, count in found.items() if count}


def loss_lines(topic: str, found: Mapping[PartitionLedger, int]) -> list[str]:
    """A line for each partition with a loss."""
    return [
        f"{topic}-{ledger.partition}: {count} of the offsets {ledger.start} to {ledger.end} were "
        "deleted before they were loaded"
        for ledger, count in found.items()
    ]


def require_no_loss(topic: str, found: Mapping[PartitionLedger, int], remedy: str) -> None:
    """Raise RecordsLost (OFFSET_OUT_OF_RANGE) where there is a loss."""
    if found:
        raise RecordsLost(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"{'; '.join(loss_lines(topic, found))}. {remedy}"
        )
