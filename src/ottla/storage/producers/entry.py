"""A log's state of one producer: its last batches, its epoch, its open transaction."""

from typing import NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import NO_PRODUCER_EPOCH, NO_SEQUENCE
from ottla.record.header import BatchHeader

BATCHES_KEPT = 5
SEQUENCE_MASK = 0x7FFFFFFF
NO_OFFSET = -1
_HALF = SEQUENCE_MASK // 2


class AppendedBatch(NamedTuple):
    """One batch that a producer appended. `timestamp` is its greatest, in milliseconds."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & SEQUENCE_MASK

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry:
    """The state of one producer id in one partition."""

    __slots__ = (
        "batches",
        "chain_start",
        "coordinator_epoch",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
        "transaction_first_offset",
    )

    def __init__(
        self,
        producer_id: int,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        coordinator_epoch: int = -1,
        last_timestamp: int = -1,
        transaction_first_offset: int = NO_OFFSET,
        batches: list[AppendedBatch] | None = None,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        # First offset of the open transaction, NO_OFFSET where none is open.
        self.transaction_first_offset = transaction_first_offset
        # Invariant: oldest first, at most BATCHES_KEPT, all of `producer_epoch`.
        self.batches = batches if batches is not None else []
        # Every sequence of `producer_epoch` from here to the last one is known to be appended;
        # set with the first of `batches`, NO_SEQUENCE before.
        self.chain_start = self.batches[0].first_sequence if self.batches else NO_SEQUENCE

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def duplicate_of(self, header: BatchHeader) -> AppendedBatch | None:
        """The kept batch that `header` repeats, if any."""
        if header.producer_epoch != self.producer_epoch:
            return None
        first, last = header.base_sequence, header.last_sequence
        for batch in self.batches:
            if batch.last_sequence == last and batch.first_sequence == first:
                return batch
        return None

    def is_before_kept(self, header: BatchHeader) -> bool:
        """Whether `header` is of sequences that were appended before the batches kept."""
        if header.producer_epoch != self.producer_epoch or not self.batches:
            return False
        # Counted backwards from the first one kept, for sequences wrap around.
        kept = self.batches[0].first_sequence
        known = kept - self.chain_start & SEQUENCE_MASK
        first = kept - header.base_sequence & SEQUENCE_MASK
        last = kept - header.last_sequence & SEQUENCE_MASK
        return 0 < last <= first <= known and first <= _HALF


def check_order(entry: ProducerEntry, header: BatchHeader) -> None:
    """Raise OttlaError where the batch, which repeats none, is not the next one."""
    epoch = header.producer_epoch
    if epoch < entry.producer_epoch:
        raise fenced(entry, epoch)
    if epoch > entry.producer_epoch:
        if header.base_sequence != 0 and entry.producer_epoch != NO_PRODUCER_EPOCH:
            raise OttlaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {entry.producer_id} begins epoch {epoch} at sequence "
                f"{header.base_sequence}; a new epoch begins at 0",
            )
    elif entry.is_before_kept(header):
        raise OttlaError(
            ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
            f"producer {entry.producer_id} of epoch {epoch} sent sequence {header.base_sequence} "
            f"again, long after it was appended; {entry.last_sequence} is the last one now",
        )
    elif header.base_sequence != entry.last_sequence + 1 & SEQUENCE_MASK:
        raise OttlaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {entry.producer_id} of epoch {epoch} sent sequence "
            f"{header.base_sequence} after {entry.last_sequence}",
        )


def fenced(entry: ProducerEntry, producer_epoch: int) -> OttlaError:
    """The refusal of an epoch before the producer's present one."""
    return OttlaError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"producer {entry.producer_id} sent epoch {producer_epoch}, "
        f"but epoch {entry.producer_epoch} is in use",
    )
