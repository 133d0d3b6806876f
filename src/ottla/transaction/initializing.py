"""InitProducerId: a producer begins under a transactional id, and its predecessors are fenced."""

from dataclasses import replace
from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.base.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ottla.transaction.ending import fence
from ottla.transaction.state import TransactionState
from ottla.transaction.transaction import (
    EPOCH_MAX,
    NO_TIMESTAMP,
    NOBODY,
    Identity,
    Transaction,
)
from ottla.transaction.turn import Verdict


class Wish(NamedTuple):
    """What a producer asks for. `identity` is what it had so far (KIP-360), or NOBODY."""

    timeout_ms: int
    identity: Identity = NOBODY


def initialize(
    known: Transaction | None, wish: Wish, fresh_producer_id: int | None, timestamp_ms: int
) -> Verdict:
    """Give the producer an epoch of its own.

    An open transaction is aborted first, in an epoch that no producer has; the producer asks
    again. `fresh_producer_id` is one that was never used, None where none is at hand.
    """
    if known is None:
        return _begin(wish, fresh_producer_id, timestamp_ms)
    if not _may_be(known, wish.identity):
        return Verdict(ErrorCode.PRODUCER_FENCED)
    if known.is_prepared:
        return Verdict(ErrorCode.CONCURRENT_TRANSACTIONS, waits=True)
    if known.state is TransactionState.ONGOING:
        if wish.identity != NOBODY and wish.identity != known.identity:
            # Not the producer of the open transaction: a late request of an earlier one.
            return Verdict(ErrorCode.PRODUCER_FENCED)
        aborted = fence(known, timestamp_ms)
        return Verdict(ErrorCode.CONCURRENT_TRANSACTIONS, to=aborted, waits=True)
    return _go_on(known, wish, fresh_producer_id, timestamp_ms)


def _begin(wish: Wish, fresh_producer_id: int | None, timestamp_ms: int) -> Verdict:
    if fresh_producer_id is None:
        return Verdict(ErrorCode.CONCURRENT_TRANSACTIONS)
    begun = Transaction(
        fresh_producer_id, 0, wish.timeout_ms, last_update_timestamp_ms=timestamp_ms
    )
    return Verdict(ErrorCode.NONE, to=begun, identity=begun.identity)


def _go_on(
    known: Transaction, wish: Wish, fresh_producer_id: int | None, timestamp_ms: int
) -> Verdict:
    """The next epoch, or the next id where there is none."""
    asked = wish.identity
    is_named = asked != NOBODY
    if is_named and _is_repetition(known, asked):
        return Verdict(ErrorCode.NONE, identity=known.identity)
    if is_named and asked != known.identity:
        return Verdict(ErrorCode.PRODUCER_FENCED)
    # A producer that names itself may ask again; one that does not has fenced all others.
    last_epoch = known.producer_epoch if is_named else NO_PRODUCER_EPOCH
    producer_id, epoch = known.producer_id, known.producer_epoch + 1
    if known.is_exhausted:
        if fresh_producer_id is None:
            return Verdict(ErrorCode.CONCURRENT_TRANSACTIONS)
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
    return Verdict(ErrorCode.NONE, to=changed, identity=changed.identity)


def _may_be(known: Transaction, asked: Identity) -> bool:
    """Whether a producer that had `asked` can be the one that the id belongs to."""
    return (
        asked == NOBODY
        or asked.producer_id == known.producer_id
        or asked == known.next_identity
        or (
            asked.producer_id == known.previous_producer_id
            and asked.producer_epoch >= EPOCH_MAX - 1
        )
    )


def _is_repetition(known: Transaction, asked: Identity) -> bool:
    """Whether its epoch was raised before, and only the answer was lost."""
    return (
        known.last_producer_epoch != NO_PRODUCER_EPOCH
        and asked.producer_epoch == known.last_producer_epoch
        and asked.producer_id in (known.producer_id, known.previous_producer_id)
    )
