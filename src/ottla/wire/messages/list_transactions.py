"""ListTransactions (key 66): the transactions a broker coordinates (KIP-664).

Always flexible. Version 1 filters by duration (KIP-994), 2 by a pattern (KIP-1152).
"""

from ottla.wire.notation import Message, array, int16, int32, int64, string


class ListTransactionsRequest(Message, api_key=66, versions="0-2", flexible="0+"):
    """A ListTransactions request."""

    state_filters: list[str] = array(string)
    producer_id_filters: list[int] = array(int64)
    duration_filter: int = int64("1+", default=-1)
    transactional_id_pattern: str | None = string("2+", nullable="2+")


class TransactionState(Message):
    """An element of `ListTransactionsResponse.transaction_states`."""

    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


class ListTransactionsResponse(Message, api_key=66, versions="0-2", flexible="0+"):
    """A ListTransactions response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: list[str] = array(string)
    transaction_states: list[TransactionState] = array(TransactionState)
