"""Loss: offsets that retention or a deletion removed before they were loaded. Pure.

Records that were gone before a partition's first load was planned are not a loss. Records that went
later are: the table's position, or the log's start at planning, shows that they were there to be
loaded.
"""

from collections.abc import Iterable, Mapping

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.plan import PartitionBounds
from ottla.ledger.partition import PartitionLedger


class RecordsLost(OttlaError):
    """Raised if records were deleted before they were loaded, and the loss was not accepted."""


def gone_before(
    bounds: Mapping[int, PartitionBounds], positions: Mapping[int, int]
) -> dict[int, int]:
    """Return the offset of each partition below which a deletion is no loss.

    This is the log's start when the load was planned, or the partition's position in the table.
    """
    return {p: positions.get(p, bound.log_start) for p, bound in bounds.items()}


def lost(ledger: PartitionLedger, gone_below: int) -> int:
    """Return how many of the ledger's deleted offsets are lost. Deletions take the oldest first."""
    return max(0, ledger.deleted - max(0, min(ledger.end, gone_below) - ledger.start))


def deleted_at(start: int, end: int, partition: int, bound: PartitionBounds) -> PartitionLedger:
    """Return the ledger of a range before it is read: how many offsets the log has deleted."""
    return PartitionLedger(partition, start, end, deleted=max(0, min(end, bound.log_start) - start))


def losses(
    ledgers: Iterable[PartitionLedger], gone_below: Mapping[int, int]
) -> dict[PartitionLedger, int]:
    """Return the ledgers that have a loss, with the number of lost offsets."""
    found = {ledger: lost(ledger, gone_below.get(ledger.partition, 0)) for ledger in ledgers}
    return {ledger: count for ledger, count in found.items() if count}


def loss_lines(topic: str, found: Mapping[PartitionLedger, int]) -> list[str]:
    """Return a line for each partition with a loss."""
    return [
        f"{topic}-{ledger.partition}: {count} of the offsets {ledger.start} to {ledger.end} were "
        "deleted before they were loaded"
        for ledger, count in found.items()
    ]


def require_no_loss(topic: str, found: Mapping[PartitionLedger, int], remedy: str) -> None:
    """Raise RecordsLost (OFFSET_OUT_OF_RANGE) if there is a loss."""
    if found:
        raise RecordsLost(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"{'; '.join(loss_lines(topic, found))}. {remedy}"
        )
