"""AddPartitionsToTxn and AddOffsetsToTxn: the partitions that a transaction will write."""

from collections.abc import Set as AbstractSet
from dataclasses import replace

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.transaction.state import TransactionState
from ottla.transaction.transaction import ProducerIdentity, Transaction
from ottla.transaction.turn import TransactionVerdict


def add(
    known: Transaction | None,
    identity: ProducerIdentity,
    partitions: AbstractSet[TopicPartition],
    client_version: int,
    timestamp_ms: int,
) -> TransactionVerdict:
    """Add `partitions` to the transaction; the first ones begin it."""
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
    """Check whether each of `partitions` is in the transaction (KIP-890); a Verdict refuses all."""
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
