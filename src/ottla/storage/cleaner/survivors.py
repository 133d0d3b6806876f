"""Decides which batches and records of a compacted log stay, from headers, keys and offset map.

The rules are Kafka's:

- The latest record of each key stays. If it is a tombstone, it is removed once its batch's delete
  horizon has passed, which the first cleaning sets.
- Records of aborted transactions are removed.
- A transaction's marker stays as long as records of the transaction do. Then a cleaning sets its
  delete horizon, and it is removed once that has passed.
- The last batch of each producer stays, for its sequence number, and the last batch of the cleaned
  range, for its offset. If none of its records stay, the batch stays without records.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from ottla.record.header import DELETE_HORIZON_FLAG, BatchHeader
from ottla.storage.index.transaction_index import AbortedTransaction

NO_DATA = -1


@dataclass(frozen=True, slots=True)
class LastOfProducer:
    """The batch of a producer that must stay: its last data batch, else a marker of its epoch.

    `last_offset` is the offset of the batch's last record, NO_DATA if none is known.
    """

    last_offset: int
    producer_epoch: int


class Fate(Enum):
    """The decision about a batch."""

    # Each record is decided on its own. A batch that keeps no record is removed.
    SIFT = "sift"
    # The same, but a batch that keeps no record is reduced to its header.
    SIFT_KEEP_HEADER = "sift, keep the header"
    # No record stays.
    DROP = "drop"
    DROP_KEEP_HEADER = "drop, keep the header"
    # A marker stays unchanged, or gets a horizon, because no record of its transaction is left.
    KEEP = "keep"
    KEEP_UNTIL = "keep until a horizon"


class Transactions:
    """Tracks, in offset order, which transactions were aborted and which still have batches."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """`aborted` are all aborted transactions with records in the range that is read."""
        # Latest first, so that the next one is at the end.
        self._coming = sorted(aborted, key=lambda entry: entry.first_offset, reverse=True)
        # By producer, the aborted transaction that is open at this offset; and the producers that
        # have batches in theirs.
        self._open: dict[int, AbortedTransaction] = {}
        self._seen: set[int] = set()
        # Producers with batches of a transaction that was committed.
        self._committed: set[int] = set()

    def on_batch(self, header: BatchHeader) -> bool:
        """Note a data batch; return whether its transaction was aborted."""
        if not header.is_transactional:
            return False
        self._advance(header.last_offset)
        if header.producer_id in self._open:
            self._seen.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def on_marker(
        self, header: BatchHeader, *, is_commit: bool
    ) -> tuple[bool, AbortedTransaction | None]:
        """Note a marker.

        Return whether no batch of its transaction is left, and the transaction's entry in the
        index if that stays.
        """
        self._advance(header.last_offset)
        producer_id = header.producer_id
        if is_commit:
            left = producer_id in self._committed
            self._committed.discard(producer_id)
            return not left, None
        entry = self._open.pop(producer_id, None)
        left = producer_id in self._seen
        self._seen.discard(producer_id)
        return not left, entry if left else None

    def _advance(self, offset: int) -> None:
        coming = self._coming
        while coming and coming[-1].first_offset <= offset:
            entry = coming.pop()
            self._open.setdefault(entry.producer_id, entry)


class Keeping:
    """Makes those decisions of one cleaning that need only the headers of batches."""

    def __init__(
        self,
        last_batches: Mapping[int, LastOfProducer],
        transactions: Transactions,
        *,
        end_offset: int,
        now_ms: int,
    ) -> None:
        """Prepare the decisions; the last batch before `end_offset` keeps at least its header."""
        self._last_batches = last_batches
        self._transactions = transactions
        self._end_offset = end_offset
        self._now_ms = now_ms

    def data(self, header: BatchHeader) -> Fate:
        """Decide about a batch of records."""
        dropped = self._transactions.on_batch(header)
        if self._must_stay(header):
            return Fate.DROP_KEEP_HEADER if dropped else Fate.SIFT_KEEP_HEADER
        return Fate.DROP if dropped else Fate.SIFT

    def marker(
        self, header: BatchHeader, *, is_commit: bool
    ) -> tuple[Fate, AbortedTransaction | None]:
        """Decide about an end-transaction marker, and about its entry in the index."""
        spent, entry = self._transactions.on_marker(header, is_commit=is_commit)
        if not spent:
            return Fate.KEEP, entry
        if not has_horizon(header):
            return Fate.KEEP_UNTIL, entry
        if header.base_timestamp > self._now_ms:
            return Fate.KEEP, entry
        return (Fate.DROP_KEEP_HEADER if self._must_stay(header) else Fate.DROP), entry

    def empty(self, header: BatchHeader) -> Fate:
        """Decide about a batch that an earlier cleaning has left without records."""
        if header.is_transactional and not header.is_control:
            self._transactions.on_batch(header)
        return Fate.KEEP if self._must_stay(header) else Fate.DROP

    def tombstones_stay(self, header: BatchHeader) -> bool:
        """Whether a lagging reader may still need the tombstones in the batch."""
        return not has_horizon(header) or self._now_ms < header.base_timestamp

    def _must_stay(self, header: BatchHeader) -> bool:
        if header.last_offset + 1 == self._end_offset:
            return True
        if header.producer_id < 0:
            return False
        last = self._last_batches.get(header.producer_id)
        if last is None:
            return False
        if last.last_offset != NO_DATA:
            return header.last_offset == last.last_offset and not header.is_control
        return header.is_control and header.producer_epoch == last.producer_epoch


def has_horizon(header: BatchHeader) -> bool:
    """Whether the batch's base timestamp is its delete horizon (KIP-534)."""
    return header.attributes & DELETE_HORIZON_FLAG != 0
