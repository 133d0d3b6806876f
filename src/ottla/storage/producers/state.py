"""A log's state of its idempotent and transactional producers: sequences and transactions.

Semantics are Kafka's (KIP-98, KIP-360, KIP-447, KIP-890 as far as the log is concerned): the last
five batches of each producer reveal duplicates, a new epoch begins at sequence 0, a producer
without state may begin anywhere. `snapshot` encodes the state.
"""

from itertools import islice
from struct import Struct
from typing import Final, NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import NO_PRODUCER_EPOCH, NO_SEQUENCE
from ottla.record.arrival import BatchRun
from ottla.record.header import TRANSACTIONAL_FLAG, BatchHeader

BATCHES_KEPT = 5
SEQUENCE_MASK = 0x7FFFFFFF
NO_OFFSET = -1
_HALF = SEQUENCE_MASK // 2
# The form of a producer in a snapshot: see `snapshot`.
PACKED: Final = Struct(">qhiqiqiq")


class AppendedBatch(NamedTuple):
    """One batch that a producer appended. `timestamp` is its greatest one, in milliseconds."""

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


_NO_BATCH: Final = AppendedBatch(-1, -1, 0, -1)


class ProducerEntry:
    """The state of one producer id in one partition."""

    __slots__ = (
        "batches",
        "chain_start",
        "coordinator_epoch",
        "last_timestamp",
        "packed",
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
        # First offset of the open transaction, NO_OFFSET if none is open.
        self.transaction_first_offset = transaction_first_offset
        # Invariant: oldest first, at most BATCHES_KEPT, all of `producer_epoch`.
        self.batches = batches if batches is not None else []
        # Every sequence of `producer_epoch` from here to the last one is known to be appended;
        # set with the first of `batches`, NO_SEQUENCE before.
        self.chain_start = self.batches[0].first_sequence if self.batches else NO_SEQUENCE
        # The bytes of this producer in a snapshot, unless `ProducerStates` has noted a change.
        self.packed = b""

    def pack(self) -> None:
        """Bring `packed` up to date."""
        # Hot: once per producer and snapshot, or less.
        last = self.batches[-1] if self.batches else _NO_BATCH
        self.packed = PACKED.pack(
            self.producer_id,
            self.producer_epoch,
            last.last_sequence,
            last.last_offset,
            last.offset_delta,
            self.last_timestamp,
            self.coordinator_epoch,
            self.transaction_first_offset,
        )

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def add(
        self, base_sequence: int, base_offset: int, last_offset_delta: int, timestamp: int
    ) -> None:
        """Note the batch at `base_offset`; `base_sequence` is NO_SEQUENCE if it has none."""
        if base_sequence != NO_SEQUENCE:
            batches = self.batches
            if not batches:
                self.chain_start = base_sequence
            last_sequence = base_sequence + last_offset_delta & SEQUENCE_MASK
            last_offset = base_offset + last_offset_delta
            batches.append(AppendedBatch(last_sequence, last_offset, last_offset_delta, timestamp))
            if len(batches) > BATCHES_KEPT:
                del batches[0]
        self.last_timestamp = timestamp

    def duplicate_of(self, header: BatchHeader) -> AppendedBatch | None:
        """Return the kept batch that `header` duplicates, if any."""
        if header.producer_epoch != self.producer_epoch:
            return None
        first, last = header.base_sequence, header.last_sequence
        for batch in self.batches:
            if batch.last_sequence == last and batch.first_sequence == first:
                return batch
        return None

    def is_before_kept(self, header: BatchHeader) -> bool:
        """Return whether the sequences of `header` were appended before the oldest kept batch."""
        if header.producer_epoch != self.producer_epoch or not self.batches:
            return False
        # Count backwards from the first batch kept, because sequences wrap around.
        kept = self.batches[0].first_sequence
        known = kept - self.chain_start & SEQUENCE_MASK
        first = kept - header.base_sequence & SEQUENCE_MASK
        last = kept - header.last_sequence & SEQUENCE_MASK
        return 0 < last <= first <= known and first <= _HALF


def check_order(entry: ProducerEntry, header: BatchHeader) -> None:
    """Raise OttlaError if the batch, which is no duplicate, is not the producer's next one."""
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
    """Return the error for an epoch before the producer's present one."""
    return OttlaError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"producer {entry.producer_id} sent epoch {producer_epoch}, "
        f"but epoch {entry.producer_epoch} is in use",
    )


# The most producers that one partition remembers: 40 MiB. A client may invent an id for each batch.
PRODUCERS_MAX: Final = 100_000
# One producer in this many is forgotten at a time.
_FORGOTTEN: Final = 10
# So many changed producers are packed together; all that are left when a snapshot is taken.
_UNPACKED_MAX: Final = 500


class CompletedTransaction(NamedTuple):
    """A transaction that a marker at `last_offset` has just ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class Guard:
    """A token that is valid until a marker ends a transaction of its producer (KIP-890)."""


class ProducerStates:
    """All producers of one log."""

    def __init__(self, expiration_ms: int = 86_400_000, num_max: int = PRODUCERS_MAX) -> None:
        self.expiration_ms = expiration_ms
        self._num_max = num_max
        # Producers forgotten early to make room, since the last `take_forgotten`.
        self._forgotten = 0
        # In the order in which they last appended, but for the unpacked ones.
        self.entries: dict[int, ProducerEntry] = {}
        # The producers that have changed since they were packed. A snapshot of all producers would
        # hold the loop for long if it had to pack each of them.
        self._unpacked: dict[int, ProducerEntry] = {}
        # Offset up to which (exclusive) the log is reflected here.
        self.map_end_offset = 0
        # First offset -> producer id of transactions without a marker, oldest first.
        self.open_transactions: dict[int, int] = {}
        # Transactions ended by a marker that may still be above the high watermark.
        self.unreplicated: list[CompletedTransaction] = []
        # Guards of producers whose transaction is being verified with its coordinator, see `guard`.
        self._guards: dict[int, Guard] = {}

    def check(self, header: BatchHeader) -> AppendedBatch | None:
        """Check a client's batch before it is appended.

        Returns the earlier append that it duplicates, None if it is new and in order. Raises
        OttlaError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE;
        DUPLICATE_SEQUENCE_NUMBER for a duplicate of a batch too old for its offsets to be known.
        """
        # Hot: 0.6 µs for a batch in order.
        entry = self.entries.get(header.producer_id)
        if entry is None:
            return None
        batches = entry.batches
        if header.base_sequence == NO_SEQUENCE:
            # Written by a group coordinator on behalf of the producer: it has no sequence.
            if header.producer_epoch < entry.producer_epoch:
                raise fenced(entry, header.producer_epoch)
            return None
        expected = batches[-1].last_sequence + 1 & SEQUENCE_MASK if batches else 0
        if header.producer_epoch != entry.producer_epoch or header.base_sequence != expected:
            duplicate = entry.duplicate_of(header)
            if duplicate is not None:
                return duplicate
            check_order(entry, header)
        if entry.transaction_first_offset != NO_OFFSET and not header.is_transactional:
            raise OttlaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {entry.producer_id} has an open transaction "
                "but sent a batch outside of it",
            )
        return None

    def update(self, header: BatchHeader, base_offset: int) -> None:
        """Record the data batch at `base_offset`, without checking it."""
        # Hot: 1.0 µs.
        producer_id = header.producer_id
        entry = self._entry(producer_id, header.producer_epoch)
        entry.add(header.base_sequence, base_offset, header.last_offset_delta, header.max_timestamp)
        if header.attributes & TRANSACTIONAL_FLAG and entry.transaction_first_offset == NO_OFFSET:
            entry.transaction_first_offset = base_offset
            self.open_transactions[base_offset] = producer_id
            self._guards.pop(producer_id, None)

    def update_run(self, run: BatchRun, base_offset: int) -> None:
        """Record a run of an idempotent producer that begins at `base_offset`."""
        # Hot: its loop once per batch.
        add = self._entry(run.producer_id, run.producer_epoch).add
        for arrived in run.arrived:
            delta = arrived.last_offset_delta
            add(arrived.base_sequence, base_offset, delta, arrived.max_timestamp)
            base_offset += delta + 1

    def _entry(self, producer_id: int, producer_epoch: int) -> ProducerEntry:
        """Return the entry of a producer that appends in this epoch; made if it is missing."""
        entry = self.entries.get(producer_id)
        if entry is None:
            if len(self.entries) >= self._num_max:
                self._make_room()
            entry = self.entries[producer_id] = ProducerEntry(producer_id)
        if producer_epoch != entry.producer_epoch:
            entry.producer_epoch = producer_epoch
            entry.batches.clear()
        if len(self._unpacked) >= _UNPACKED_MAX:
            self._pack()
        self._unpacked[producer_id] = entry
        return entry

    def guard(self, producer_id: int) -> Guard:
        """Begin to verify with the coordinator that the producer's transaction is open (KIP-890).

        The guard is passed to `check_open` with the batch after the coordinator has confirmed it.
        It is void if a marker was written meanwhile: verify again then.
        """
        return self._guards.setdefault(producer_id, Guard())

    def is_guarded(self, producer_id: int, guard: Guard) -> bool:
        """Whether `guard` is still valid."""
        return self._guards.get(producer_id) is guard

    def is_open(self, producer_id: int, producer_epoch: int) -> bool:
        """Return whether the producer's transaction is open here, and needs no verification."""
        entry = self.entries.get(producer_id)
        return (
            entry is not None
            and entry.transaction_first_offset != NO_OFFSET
            and entry.producer_epoch == producer_epoch
        )

    def check_open(self, header: BatchHeader, guard: Guard | None) -> None:
        """Refuse a transactional batch whose transaction is neither open here nor verified.

        Raises OttlaError: INVALID_TXN_STATE.
        """
        producer_id = header.producer_id
        if self.is_open(producer_id, header.producer_epoch):
            return
        if guard is None or not self.is_guarded(producer_id, guard):
            raise OttlaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {producer_id} of epoch {header.producer_epoch} has no open transaction "
                "here; add the partition to it first",
            )

    def check_marker(
        self, header: BatchHeader, coordinator_epoch: int, *, raises_epoch: bool = False
    ) -> bool:
        """Check a marker before the leader appends it; return False if the log already contains it.

        `raises_epoch` says that each transaction of the producer ends with a new epoch (KIP-890),
        by which a repeated or late marker is recognised. Raises OttlaError: INVALID_PRODUCER_EPOCH,
        TRANSACTION_COORDINATOR_FENCED.
        """
        entry = self.entries.get(header.producer_id)
        if entry is None:
            return True
        if header.producer_epoch < entry.producer_epoch:
            raise fenced(entry, header.producer_epoch)
        if coordinator_epoch < entry.coordinator_epoch:
            raise OttlaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"marker of coordinator epoch {coordinator_epoch} for producer "
                f"{entry.producer_id}, which has seen epoch {entry.coordinator_epoch}",
            )
        if raises_epoch and header.producer_epoch == entry.producer_epoch:
            if entry.transaction_first_offset == NO_OFFSET:
                return False
            raise OttlaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"marker of epoch {header.producer_epoch} for producer {entry.producer_id}, whose "
                "next transaction has begun in that epoch",
            )
        return True

    def end_transaction(
        self, header: BatchHeader, offset: int, coordinator_epoch: int, is_aborted: bool
    ) -> CompletedTransaction | None:
        """Apply the marker at `offset`; return the transaction that it ended, None for none."""
        self._guards.pop(header.producer_id, None)
        entry = self.entries.get(header.producer_id)
        if entry is None:
            entry = self.entries[header.producer_id] = ProducerEntry(header.producer_id)
        if header.producer_epoch != entry.producer_epoch:
            entry.producer_epoch = header.producer_epoch
            entry.batches.clear()
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = header.max_timestamp
        self._unpacked[header.producer_id] = entry
        first_offset = entry.transaction_first_offset
        if first_offset == NO_OFFSET:
            return None
        entry.transaction_first_offset = NO_OFFSET
        self.open_transactions.pop(first_offset, None)
        completed = CompletedTransaction(header.producer_id, first_offset, offset, is_aborted)
        self.unreplicated.append(completed)
        return completed

    def last_stable_offset_after(self, completed: CompletedTransaction) -> int:
        """Return the last stable offset after `completed` is decided, for the index entry."""
        for first_offset in self.open_transactions:
            return first_offset
        return completed.last_offset + 1

    def on_high_watermark(self, high_watermark: int) -> None:
        """Forget ended transactions whose marker is committed."""
        if self.unreplicated:
            self.unreplicated = [
                completed
                for completed in self.unreplicated
                if completed.last_offset >= high_watermark
            ]

    def first_unstable_offset(self) -> int | None:
        """Return the lowest first offset of undecided transactions; None if there is none.

        A transaction is undecided while it is open, or its marker is above the high watermark.
        """
        first = next(iter(self.open_transactions), None)
        for completed in self.unreplicated:
            if first is None or completed.first_offset < first:
                first = completed.first_offset
        return first

    def last_stable_offset(self, high_watermark: int, log_start_offset: int) -> int:
        """Return the last stable offset, between log start offset and `high_watermark`.

        Below it no transaction is undecided.
        """
        if not self.open_transactions and not self.unreplicated:
            return high_watermark
        self.on_high_watermark(high_watermark)
        unstable = self.first_unstable_offset()
        if unstable is None:
            return high_watermark
        # Records of an open transaction may have been deleted.
        return min(max(unstable, log_start_offset), high_watermark)

    def described(self) -> list[ProducerEntry]:
        """Return the remembered producers, by id."""
        return [entry for _, entry in sorted(self.entries.items())]

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers that have been silent for `expiration_ms` and hold no transaction."""
        self.expiration_ms = expiration_ms
        for producer_id in [p for p, entry in self.entries.items() if self.expired(entry, now_ms)]:
            del self.entries[producer_id]
        # Verifications that are under way are repeated.
        self._guards.clear()

    def take_forgotten(self) -> int:
        """Return how many producers were forgotten to make room since the last call."""
        forgotten, self._forgotten = self._forgotten, 0
        return forgotten

    def _make_room(self) -> None:
        """Forget producers that have appended nothing for the longest time.

        The order of appends decides, since timestamps are the clients' own. A producer that comes
        back is treated like one whose state has expired: its next batch may have any sequence.
        """
        self._pack()
        idle = (
            producer_id
            for producer_id, entry in self.entries.items()
            if entry.transaction_first_offset == NO_OFFSET
        )
        for producer_id in list(islice(idle, max(1, self._num_max // _FORGOTTEN))):
            del self.entries[producer_id]
            self._forgotten += 1

    def packed(self) -> list[bytes]:
        """Return all producers in the form of a snapshot."""
        self._pack()
        return [entry.packed for entry in self.entries.values()]

    def _pack(self) -> None:
        """Pack the producers that have changed, and move them to the end of `entries`."""
        unpacked, self._unpacked = self._unpacked, {}
        for entry in sorted(unpacked.values(), key=lambda entry: entry.last_offset):
            if self.entries.pop(entry.producer_id, None) is not None:
                entry.pack()
                self.entries[entry.producer_id] = entry

    def expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        return (
            entry.transaction_first_offset == NO_OFFSET
            and now_ms - entry.last_timestamp >= self.expiration_ms
        )

    def load(self, entries: list[ProducerEntry], map_end_offset: int, now_ms: int) -> None:
        """Replace the state with a snapshot's entries."""
        kept = [entry for entry in entries if not self.expired(entry, now_ms)]
        kept.sort(key=lambda entry: entry.last_offset)
        self.entries = {entry.producer_id: entry for entry in kept}
        self._unpacked = {entry.producer_id: entry for entry in kept if not entry.packed}
        self.open_transactions = {
            entry.transaction_first_offset: entry.producer_id
            for entry in sorted(kept, key=lambda entry: entry.transaction_first_offset)
            if entry.transaction_first_offset != NO_OFFSET
        }
        self.unreplicated = []
        self._guards.clear()
        self.map_end_offset = map_end_offset
