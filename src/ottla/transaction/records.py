"""The records of `__transaction_state`, as values and as Kafka's bytes.

The key's version is 0. Values are written in version 1 (KIP-890), and read in 0 and 1.
"""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition, by_topic
from ottla.transaction.transaction import Transaction, TransactionRecord, TransactionState
from ottla.wire.errors import WireError
from ottla.wire.stored import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
    decode_versioned,
    encode_versioned,
    read_version,
)

_KEY_VERSION = 0
_VALUE_VERSION = 1


def encode(record: TransactionRecord) -> tuple[bytes, bytes | None]:
    """Return the key and the value; a tombstone's value is None."""
    key = encode_versioned(
        TransactionLogKey(transactional_id=record.transactional_id), _KEY_VERSION
    )
    known = record.transaction
    return key, None if known is None else encode_versioned(_stored(known), _VALUE_VERSION)


def decode(key: bytes, value: bytes | None) -> TransactionRecord | None:
    """Decode a record; None for a record type that this broker does not know.

    Raises OttlaError (CORRUPT_MESSAGE) if the bytes are invalid.
    """
    try:
        if read_version(key) != _KEY_VERSION:
            return None
        transactional_id = decode_versioned(TransactionLogKey, key).transactional_id
        known = None if value is None else _known(decode_versioned(TransactionLogValue, value))
    except (WireError, ValueError) as error:
        raise OttlaError(
            ErrorCode.CORRUPT_MESSAGE, f"a record of __transaction_state cannot be read: {error}"
        ) from error
    return TransactionRecord(transactional_id, known)


def _stored(known: Transaction) -> TransactionLogValue:
    topics = by_topic(sorted(known.partitions))
    return TransactionLogValue(
        producer_id=known.producer_id,
        previous_producer_id=known.previous_producer_id,
        next_producer_id=known.next_producer_id,
        producer_epoch=known.producer_epoch,
        transaction_timeout_ms=known.timeout_ms,
        transaction_status=known.state,
        transaction_partitions=[
            PartitionsSchema(topic=topic, partition_ids=indexes)
            for topic, indexes in topics.items()
        ]
        or None,
        transaction_last_update_timestamp_ms=known.last_update_timestamp_ms,
        transaction_start_timestamp_ms=known.start_timestamp_ms,
        client_transaction_version=known.client_version,
        last_producer_epoch=known.last_producer_epoch,
    )


def _known(stored: TransactionLogValue) -> Transaction:
    return Transaction(
        producer_id=stored.producer_id,
        producer_epoch=stored.producer_epoch,
        timeout_ms=stored.transaction_timeout_ms,
        state=TransactionState(stored.transaction_status),
        partitions=frozenset(
            TopicPartition(each.topic, index)
            for each in stored.transaction_partitions or ()
            for index in each.partition_ids
        ),
        start_timestamp_ms=stored.transaction_start_timestamp_ms,
        last_update_timestamp_ms=stored.transaction_last_update_timestamp_ms,
        last_producer_epoch=stored.last_producer_epoch,
        previous_producer_id=stored.previous_producer_id,
        next_producer_id=stored.next_producer_id,
        client_version=stored.client_transaction_version,
    )
