"""AddOffsetsToTxn (key 25): before a transaction commits offsets of a group.

Adds the group's partition of `__consumer_offsets` to the transaction. Version 2 answers
PRODUCER_FENCED, 3 is flexible, 4 answers TRANSACTION_ABORTABLE (KIP-890).
"""

from ottla.wire.notation import Message, int16, int32, int64, string


class AddOffsetsToTxnRequest(Message, api_key=25, versions="0-4", flexible="3+"):
    """An AddOffsetsToTxn request."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


class AddOffsetsToTxnResponse(Message, api_key=25, versions="0-4", flexible="3+"):
    """An AddOffsetsToTxn response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
