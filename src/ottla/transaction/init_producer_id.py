"""InitProducerId: a producer registers a transactional id, and earlier producers are fenced."""

from dataclasses import replace
from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.base.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ottla.transaction.end_txn import fence
from ottla.transaction.transaction import (
    EPOCH_MAX,
    NO_IDENTITY,
    NO_TIMESTAMP,
    ProducerIdentity,
    Transaction,
    TransactionState,
    TransactionVerdict,
)


class ProducerIdWish(NamedTuple):
    """A producer's request. `identity` is its present id and epoch (KIP-360), if it has any."""

    timeout_ms: int
    identity: ProducerIdentity = NO_IDENTITY


def initialize(
    known: Transaction | None,
    wish: ProducerIdWish,
    fresh_producer_id: int | None,
    timestamp_ms: int,
) -> TransactionVerdict:
    """Give the producer a new epoch.

    An open transaction is aborted first, in an epoch that no producer has; the producer retries its
    request. `fresh_producer_id` is an id that was never used, or None if none is available.
    """
    if known is None:
        return _begin(wish, fresh_producer_id, timestamp_ms)
    if not _may_be(known, wish.identity):
        return TransactionVerdict(ErrorCode.PRODUCER_FENCED)
    if known.is_prepared:
        return TransactionVerdict(ErrorCode.CONCURRENT_TRANSACTIONS, waits=True)
    if known.state is TransactionState.ONGOING:
        if wish.identity != NO_IDENTITY and wish.identity != known.identity:
            # This is a late request of an earlier producer, which did not begin the transaction.
            return TransactionVerdict(ErrorCode.PRODUCER_FENCED)
        aborted = fence(known, timestamp_ms)
        return TransactionVerdict(ErrorCode.CONCURRENT_TRANSACTIONS, to=aborted, waits=True)
    return _go_on(known, wish, fresh_producer_id, timestamp_ms)


def _begin(
    wish: ProducerIdWish, fresh_producer_id: int | None, timestamp_ms: int
) -> TransactionVerdict:
    if fresh_producer_id is None:
        return TransactionVerdict(ErrorCode.CONCURRENT_TRANSACTIONS)
    begun = Transaction(
        fresh_producer_id, 0, wish.timeout_ms, last_update_timestamp_ms=timestamp_ms
    )
    return TransactionVerdict(ErrorCode.NONE, to=begun, identity=begun.identity)


def _go_on(
    known: Transaction, wish: ProducerIdWish, fresh_producer_id: int | None, timestamp_ms: int
) -> TransactionVerdict:
    """Give the producer its next epoch, or a new producer id if the epochs are used up."""
    asked = wish.identity
    is_named = asked != NO_IDENTITY
    if is_named and _is_repetition(known, asked):
        return TransactionVerdict(ErrorCode.NONE, identity=known.identity)
    if is_named and asked != known.identity:
        return TransactionVerdict(ErrorCode.PRODUCER_FENCED)
    # A producer that sends its identity may retry the request; one without it fences all others.
    last_epoch = known.producer_epoch if is_named else NO_PRODUCER_EPOCH
    producer_id, epoch = known.producer_id, known.producer_epoch + 1
    if known.is_exhausted:
        if fresh_producer_id is None:
            return TransactionVerdict(ErrorCode.CONCURRENT_TRANSACTIONS)
        producer_id, epoch = fresh_producer_id, 0
    changed = replace(
        known,
        producer_id=producer_id,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        previous_producer_id=known.producer_id if is_named else NO_PRODUCER_ID,
        next_producer_id=NO_PRODUCER_ID,
        timeout_ms=wish.timeout_ms,
        state=TransactionState.EMPTY,
        start_timestamp_ms=NO_TIMESTAMP,
        last_update_timestamp_ms=timestamp_ms,
    )
    return TransactionVerdict(ErrorCode.NONE, to=changed, identity=changed.identity)


def _may_be(known: Transaction, asked: ProducerIdentity) -> bool:
    """Whether a producer with the identity `asked` can own the transactional id."""
    return (
        asked == NO_IDENTITY
        or asked.producer_id == known.producer_id
        or asked == known.next_identity
        or (
            asked.producer_id == known.previous_producer_id
            and asked.producer_epoch >= EPOCH_MAX - 1
        )
    )


def _is_repetition(known: Transaction, asked: ProducerIdentity) -> bool:
    """Whether the request is a retry: its first attempt has raised the epoch already."""
    return (
        known.last_producer_epoch != NO_PRODUCER_EPOCH
        and asked.producer_epoch == known.last_producer_epoch
        and asked.producer_id in (known.producer_id, known.previous_producer_id)
    )
