"""EndTxn, the abort of overdue transactions, and the completion after the markers."""

from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.base.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition
from ottla.transaction.transaction import (
    EPOCH_MAX,
    EPOCH_PER_TRANSACTION,
    ProducerIdentity,
    Transaction,
    TransactionState,
    TransactionVerdict,
)


def add(
    known: Transaction | None,
    identity: ProducerIdentity,
    partitions: AbstractSet[TopicPartition],
    client_version: int,
    timestamp_ms: int,
) -> TransactionVerdict:
    """Add `partitions` to the transaction; the first partitions begin it."""
    refused = _check(known, identity)
    if refused is not None:
        return refused
    assert known is not None
    is_begun = known.state is TransactionState.ONGOING
    if is_begun and partitions <= known.partitions:
        return TransactionVerdict(ErrorCode.NONE)
    changed = replace(
        known,
        state=TransactionState.ONGOING,
        partitions=known.partitions | partitions,
        start_timestamp_ms=known.start_timestamp_ms if is_begun else timestamp_ms,
        last_update_timestamp_ms=timestamp_ms,
        client_version=client_version,
    )
    return TransactionVerdict(ErrorCode.NONE, to=changed)


def verify(
    known: Transaction | None, identity: ProducerIdentity, partitions: AbstractSet[TopicPartition]
) -> TransactionVerdict | dict[TopicPartition, ErrorCode]:
    """Check whether each of `partitions` is in the transaction (KIP-890); a verdict refuses all."""
    refused = _check(known, identity)
    if refused is not None:
        return refused
    assert known is not None
    return {
        partition: ErrorCode.NONE
        if partition in known.partitions
        else ErrorCode.TRANSACTION_ABORTABLE
        for partition in partitions
    }


def _check(known: Transaction | None, identity: ProducerIdentity) -> TransactionVerdict | None:
    if known is None:
        return TransactionVerdict(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if known.is_prepared and identity == known.next_identity:
        return TransactionVerdict(ErrorCode.CONCURRENT_TRANSACTIONS, waits=True)
    if known.producer_id != identity.producer_id:
        return TransactionVerdict(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if known.producer_epoch != identity.producer_epoch or known.is_prepared:
        return TransactionVerdict(ErrorCode.PRODUCER_FENCED)
    return None


_State = TransactionState
_COMPLETE = {
    _State.PREPARE_COMMIT: _State.COMPLETE_COMMIT,
    _State.PREPARE_ABORT: _State.COMPLETE_ABORT,
}
_COMMITTED = (_State.PREPARE_COMMIT, _State.COMPLETE_COMMIT)


class End(NamedTuple):
    """A producer's request to end its transaction. `client_version` as in Transaction."""

    identity: ProducerIdentity
    is_commit: bool
    client_version: int


def end(
    known: Transaction | None, wish: End, fresh_producer_id: int | None, timestamp_ms: int
) -> TransactionVerdict:
    """Decide a transaction's outcome at its producer's request.

    The answer may be sent when the decision is committed; the markers are written afterwards. A
    retry of the request gets the same answer; a request for the other outcome gets an error.
    """
    if known is None:
        return TransactionVerdict(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if wish.client_version < EPOCH_PER_TRANSACTION:
        return _end_with_same_epoch(known, wish, timestamp_ms)
    return _end_with_next_epoch(known, wish, fresh_producer_id, timestamp_ms)


def _end_with_same_epoch(known: Transaction, wish: End, timestamp_ms: int) -> TransactionVerdict:
    if wish.identity.producer_id != known.producer_id:
        return TransactionVerdict(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if wish.identity.producer_epoch != known.producer_epoch:
        return TransactionVerdict(ErrorCode.PRODUCER_FENCED)
    if known.state is _State.ONGOING:
        prepared = _prepare(known, wish, timestamp_ms)
        return TransactionVerdict(ErrorCode.NONE, to=prepared, identity=known.identity)
    return _repeat(known, wish)


def _end_with_next_epoch(
    known: Transaction, wish: End, fresh_producer_id: int | None, timestamp_ms: int
) -> TransactionVerdict:
    """Handle EndTxn as in KIP-890: the epoch distinguishes a first request from a retry."""
    if _is_again(known, wish.identity):
        return _repeat(known, wish)
    if known.is_prepared and wish.identity == known.next_identity:
        # The next transaction ends before this one's markers are written.
        return TransactionVerdict(ErrorCode.CONCURRENT_TRANSACTIONS, waits=True)
    if wish.identity.producer_id != known.producer_id:
        return TransactionVerdict(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if wish.identity.producer_epoch != known.producer_epoch or known.is_prepared:
        return TransactionVerdict(ErrorCode.PRODUCER_FENCED)
    if known.is_idle and wish.is_commit:
        # No partition was added; only an abort can end a transaction that may not have begun.
        return TransactionVerdict(ErrorCode.INVALID_TXN_STATE)
    next_producer_id: int = NO_PRODUCER_ID
    if known.is_exhausted:
        if fresh_producer_id is None:
            return TransactionVerdict(ErrorCode.CONCURRENT_TRANSACTIONS)
        next_producer_id = fresh_producer_id
    raised = replace(
        known,
        producer_epoch=known.producer_epoch + 1,
        last_producer_epoch=known.producer_epoch,
        previous_producer_id=known.producer_id,
        next_producer_id=next_producer_id,
        start_timestamp_ms=timestamp_ms if known.is_idle else known.start_timestamp_ms,
    )
    prepared = _prepare(raised, wish, timestamp_ms)
    return TransactionVerdict(ErrorCode.NONE, to=prepared, identity=prepared.next_identity)


def _is_again(known: Transaction, asked: ProducerIdentity) -> bool:
    """Whether the request is a retry: the first attempt has raised the producer's epoch."""
    return (
        (known.is_prepared or known.state in _COMPLETE.values())
        and known.last_producer_epoch != NO_PRODUCER_EPOCH
        and asked == (known.previous_producer_id, known.last_producer_epoch)
    )


def _repeat(known: Transaction, wish: End) -> TransactionVerdict:
    """Answer a retry of EndTxn according to the outcome that was decided before."""
    if known.state is _State.EMPTY or wish.is_commit != (known.state in _COMMITTED):
        return TransactionVerdict(ErrorCode.INVALID_TXN_STATE)
    if known.is_prepared:
        return TransactionVerdict(ErrorCode.CONCURRENT_TRANSACTIONS, waits=True)
    return TransactionVerdict(ErrorCode.NONE, identity=known.next_identity)


def _prepare(known: Transaction, wish: End, timestamp_ms: int) -> Transaction:
    """Decide the outcome; the transaction is complete at once if it has no partitions."""
    state = _State.PREPARE_COMMIT if wish.is_commit else _State.PREPARE_ABORT
    prepared = replace(
        known,
        state=state,
        client_version=wish.client_version,
        last_update_timestamp_ms=timestamp_ms,
    )
    return prepared if prepared.partitions else complete(prepared, timestamp_ms)


def fence(known: Transaction, timestamp_ms: int) -> Transaction:
    """Abort the open transaction against its producer's will, in an epoch that no producer has."""
    assert known.state is _State.ONGOING
    assert known.producer_epoch < EPOCH_MAX
    fenced = replace(
        known,
        producer_epoch=known.producer_epoch + 1,
        last_producer_epoch=NO_PRODUCER_EPOCH,
        state=_State.PREPARE_ABORT,
        last_update_timestamp_ms=timestamp_ms,
    )
    return fenced if fenced.partitions else complete(fenced, timestamp_ms)


def complete(prepared: Transaction, timestamp_ms: int) -> Transaction:
    """Complete the transaction, because every partition has its marker."""
    producer_id, producer_epoch = prepared.next_identity
    return replace(
        prepared,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        previous_producer_id=prepared.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        state=_COMPLETE[prepared.state],
        partitions=frozenset(),
        last_update_timestamp_ms=timestamp_ms,
    )


def is_overdue(known: Transaction, timestamp_ms: int) -> bool:
    """Whether the open transaction has exceeded its producer's timeout."""
    return (
        known.state is _State.ONGOING and known.start_timestamp_ms + known.timeout_ms < timestamp_ms
    )
