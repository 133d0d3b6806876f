"""EndTxn (key 26): commit or abort a transaction.

Version 2 answers PRODUCER_FENCED, 3 is flexible, 5 raises the producer epoch with each transaction
and answers with producer id and epoch (KIP-890).
"""

from ottla.wire.notation import Message, boolean, int16, int32, int64, string


class EndTxnRequest(Message, api_key=26, versions="0-5", flexible="3+"):
    """An EndTxn request."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


class EndTxnResponse(Message, api_key=26, versions="0-5", flexible="3+"):
    """An EndTxn response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64("5+", default=-1, ignorable=True)
    producer_epoch: int = int16("5+", default=-1, ignorable=True)
