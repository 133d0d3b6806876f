"""Messages to list and describe transactions and producers."""

from ottla.wire.notation import Message, array, int16, int32, int64, string


class ListTransactionsRequest(Message, api_key=66, versions="0-2", flexible="0+"):
    """ListTransactions (key 66): list the transactions that a broker coordinates (KIP-664).

    Always flexible. Version 1 filters by duration (KIP-994), 2 by a pattern (KIP-1152).
    """

    state_filters: list[str] = array(string)
    producer_id_filters: list[int] = array(int64)
    duration_filter: int = int64("1+", default=-1)
    transactional_id_pattern: str | None = string("2+", nullable="2+")


class ListedTransaction(Message):
    """An element of `ListTransactionsResponse.transaction_states`."""

    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


class ListTransactionsResponse(Message, api_key=66, versions="0-2", flexible="0+"):
    """A ListTransactions response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: list[str] = array(string)
    transaction_states: list[ListedTransaction] = array(ListedTransaction)


class DescribeTransactionsRequest(Message, api_key=65, versions="0", flexible="0+"):
    """DescribeTransactions (key 65): return the state of transactional ids (KIP-664).

    Always flexible.
    """

    transactional_ids: list[str] = array(string)


class TopicData(Message):
    """An element of `TransactionState.topics`."""

    topic: str = string()
    partitions: list[int] = array(int32)


class TransactionState(Message):
    """An element of `DescribeTransactionsResponse.transaction_states`."""

    error_code: int = int16()
    transactional_id: str = string()
    transaction_state: str = string()
    transaction_timeout_ms: int = int32()
    transaction_start_time_ms: int = int64()
    producer_id: int = int64()
    producer_epoch: int = int16()
    topics: list[TopicData] = array(TopicData)


class DescribeTransactionsResponse(Message, api_key=65, versions="0", flexible="0+"):
    """A DescribeTransactions response."""

    throttle_time_ms: int = int32()
    transaction_states: list[TransactionState] = array(TransactionState)


class TopicRequest(Message):
    """An element of `DescribeProducersRequest.topics`."""

    name: str = string()
    partition_indexes: list[int] = array(int32)


class DescribeProducersRequest(Message, api_key=61, versions="0", flexible="0+"):
    """DescribeProducers (key 61): list the active producers of partitions (KIP-664).

    Always flexible.
    """

    topics: list[TopicRequest] = array(TopicRequest)


class ProducerState(Message):
    """An element of `PartitionResponse.active_producers`."""

    producer_id: int = int64()
    producer_epoch: int = int32()
    last_sequence: int = int32(default=-1)
    last_timestamp: int = int64(default=-1)
    coordinator_epoch: int = int32()
    current_txn_start_offset: int = int64(default=-1)


class PartitionResponse(Message):
    """An element of `TopicResponse.partitions`."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    active_producers: list[ProducerState] = array(ProducerState)


class TopicResponse(Message):
    """An element of `DescribeProducersResponse.topics`."""

    name: str = string()
    partitions: list[PartitionResponse] = array(PartitionResponse)


class DescribeProducersResponse(Message, api_key=61, versions="0", flexible="0+"):
    """A DescribeProducers response."""

    throttle_time_ms: int = int32()
    topics: list[TopicResponse] = array(TopicResponse)
