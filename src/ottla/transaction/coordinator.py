"""The coordinator of the transactional ids in one partition of `__transaction_state`.

Commands decide: they return records to append, and answers and markers to send once these are
committed. Only `apply` changes the state, so that replaying the partition rebuilds it.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.transaction import end_txn, init_producer_id
from ottla.transaction.transaction import (
    LABELS,
    NO_TIMESTAMP,
    Answered,
    Markers,
    ProducerIdentity,
    Ticket,
    Transaction,
    TransactionDecision,
    TransactionRecord,
    TransactionReply,
    TransactionState,
    TransactionVerdict,
)


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Values of the broker's settings for transactions, with Kafka's defaults."""

    max_timeout_ms: int = 900_000
    # How long an unused id is kept.
    id_expiration_ms: int = 7 * 24 * 60 * 60 * 1_000


@dataclass(frozen=True, slots=True)
class Filter:
    """The filters of ListTransactions. Empty filters, and a `duration_ms` of -1, match all."""

    states: frozenset[TransactionState] = frozenset()
    producer_ids: frozenset[int] = frozenset()
    duration_ms: int = -1
    # Whether the whole transactional id matches the requested pattern.
    matches: Callable[[str], bool] | None = None

    def passes(self, transactional_id: str, known: Transaction, timestamp_ms: int) -> bool:
        """Whether a transactional id in the state `known` matches all filters."""
        if self.states and known.state not in self.states:
            return False
        if self.producer_ids and known.producer_id not in self.producer_ids:
            return False
        if self.duration_ms >= 0 and not _has_lasted(known, timestamp_ms, self.duration_ms):
            return False
        return self.matches is None or self.matches(transactional_id)


def _has_lasted(known: Transaction, timestamp_ms: int, duration_ms: int) -> bool:
    if known.is_idle or known.start_timestamp_ms == NO_TIMESTAMP:
        return False
    return timestamp_ms - known.start_timestamp_ms > duration_ms


def read_states(names: Sequence[str]) -> tuple[frozenset[TransactionState], list[str]]:
    """Return the states with these names, and the names that are unknown."""
    known = frozenset(LABELS[name] for name in names if name in LABELS)
    return known, [name for name in names if name not in LABELS]


class TransactionCoordinator:
    """Transactional ids and the commands on them. Times are Unix times in milliseconds."""

    def __init__(self, settings: TransactionSettings) -> None:
        self._settings = settings
        self.transactions: dict[str, Transaction] = {}

    def apply(self, record: TransactionRecord) -> None:
        """Apply a record to the state: after its append, or in a replay."""
        if record.transaction is None:
            self.transactions.pop(record.transactional_id, None)
        else:
            self.transactions[record.transactional_id] = record.transaction

    def start(self) -> TransactionDecision:
        """After the replay, return the markers of all transactions whose outcome is decided."""
        return TransactionDecision(
            markers=[
                _markers(transactional_id, known)
                for transactional_id, known in self.transactions.items()
                if known.is_prepared
            ]
        )

    def needs_producer_id(self, transactional_id: str) -> bool:
        """Whether the next InitProducerId or EndTxn may need a new producer id."""
        known = self.transactions.get(transactional_id)
        return known is None or known.is_exhausted

    def initialize(
        self,
        ticket: Ticket,
        transactional_id: str,
        wish: init_producer_id.ProducerIdWish,
        fresh_producer_id: int | None,
        timestamp_ms: int,
    ) -> TransactionDecision:
        """Handle InitProducerId. The result is Answered."""
        if not 0 < wish.timeout_ms <= self._settings.max_timeout_ms:
            verdict = TransactionVerdict(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        else:
            known = self.transactions.get(transactional_id)
            verdict = init_producer_id.initialize(known, wish, fresh_producer_id, timestamp_ms)
        return _decision(ticket, transactional_id, verdict)

    def add(
        self,
        ticket: Ticket,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: AbstractSet[TopicPartition],
        client_version: int,
        timestamp_ms: int,
    ) -> TransactionDecision:
        """Handle AddPartitionsToTxn. The result is Answered."""
        known = self.transactions.get(transactional_id)
        verdict = end_txn.add(known, identity, partitions, client_version, timestamp_ms)
        return _decision(ticket, transactional_id, verdict)

    def verify(
        self,
        ticket: Ticket,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: AbstractSet[TopicPartition],
    ) -> TransactionDecision:
        """Check that the partitions are in the transaction. The result is an ErrorCode for each."""
        found = end_txn.verify(self.transactions.get(transactional_id), identity, partitions)
        if isinstance(found, TransactionVerdict):
            codes = dict.fromkeys(partitions, found.code)
            return TransactionDecision(replies=[TransactionReply(ticket, codes)], waits=found.waits)
        return TransactionDecision(replies=[TransactionReply(ticket, found)])

    def end(
        self,
        ticket: Ticket,
        transactional_id: str,
        wish: end_txn.End,
        fresh_producer_id: int | None,
        timestamp_ms: int,
    ) -> TransactionDecision:
        """Handle EndTxn. The result is Answered."""
        known = self.transactions.get(transactional_id)
        verdict = end_txn.end(known, wish, fresh_producer_id, timestamp_ms)
        return _decision(ticket, transactional_id, verdict)

    def complete(self, markers: Markers, timestamp_ms: int) -> TransactionDecision:
        """Note that all partitions have their markers; ignored if a later transaction has begun."""
        known = self.transactions.get(markers.transactional_id)
        if (
            known is None
            or not known.is_prepared
            or known.identity != markers.identity
            or known.last_update_timestamp_ms != markers.prepared_ms
        ):
            return TransactionDecision()
        completed = end_txn.complete(known, timestamp_ms)
        return TransactionDecision(records=[TransactionRecord(markers.transactional_id, completed)])

    def describe(self, ticket: Ticket, transactional_id: str) -> TransactionDecision:
        """Handle DescribeTransactions for one id: its Transaction, or None."""
        return TransactionDecision(
            replies=[TransactionReply(ticket, self.transactions.get(transactional_id))]
        )

    def list_transactions(self, wanted: Filter, timestamp_ms: int) -> list[tuple[str, Transaction]]:
        """Handle ListTransactions."""
        return [
            (transactional_id, known)
            for transactional_id, known in self.transactions.items()
            if wanted.passes(transactional_id, known, timestamp_ms)
        ]

    def abort_overdue(self, timestamp_ms: int) -> TransactionDecision:
        """Abort transactions open for longer than their timeout, and fence their producers."""
        decision = TransactionDecision()
        for transactional_id, known in self.transactions.items():
            if end_txn.is_overdue(known, timestamp_ms):
                _write(decision, transactional_id, end_txn.fence(known, timestamp_ms))
        return decision

    def forget_unused(self, timestamp_ms: int) -> TransactionDecision:
        """Drop ids that were unused for `transactional.id.expiration.ms`."""
        limit_ms = timestamp_ms - self._settings.id_expiration_ms
        return TransactionDecision(
            records=[
                TransactionRecord(transactional_id, None)
                for transactional_id, known in self.transactions.items()
                if known.is_idle and known.last_update_timestamp_ms <= limit_ms
            ]
        )


def _decision(
    ticket: Ticket, transactional_id: str, verdict: TransactionVerdict
) -> TransactionDecision:
    answered = Answered(verdict.code, verdict.identity)
    decision = TransactionDecision(
        replies=[TransactionReply(ticket, answered)], waits=verdict.waits
    )
    if verdict.to is not None:
        _write(decision, transactional_id, verdict.to)
    return decision


def _write(decision: TransactionDecision, transactional_id: str, changed: Transaction) -> None:
    decision.records.append(TransactionRecord(transactional_id, changed))
    if changed.is_prepared:
        decision.markers.append(_markers(transactional_id, changed))


def _markers(transactional_id: str, prepared: Transaction) -> Markers:
    return Markers(
        transactional_id,
        prepared.identity,
        prepared.state is TransactionState.PREPARE_COMMIT,
        prepared.partitions,
        prepared.client_version,
        prepared.last_update_timestamp_ms,
    )
