"""Messages to begin and end transactions of producers."""

from ottla.wire.notation import Message, array, boolean, int8, int16, int32, int64, string


class InitProducerIdRequest(Message, api_key=22, versions="0-6", flexible="2+"):
    """InitProducerId (key 22): get a producer id and epoch, which fences earlier producers.

    Version 2 is flexible, 3 lets a producer continue with its id and epoch (KIP-360), 4 may return
    PRODUCER_FENCED. Version 6 is for two-phase commit (KIP-939) and is not stable.
    """

    transactional_id: str | None = string(nullable="0+")
    transaction_timeout_ms: int = int32()
    producer_id: int = int64("3+", default=-1)
    producer_epoch: int = int16("3+", default=-1)
    enable2_pc: bool = boolean("6+")
    keep_prepared_txn: bool = boolean("6+")


class InitProducerIdResponse(Message, api_key=22, versions="0-6", flexible="2+"):
    """An InitProducerId response."""

    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
    ongoing_txn_producer_id: int = int64("6+", default=-1)
    ongoing_txn_producer_epoch: int = int16("6+", default=-1)


class AddPartitionsToTxnTopic(Message):
    """A topic and its partitions, used in several parts of `AddPartitionsToTxnRequest`."""

    name: str = string()
    partitions: list[int] = array(int32)


class AddPartitionsToTxnTransaction(Message):
    """An element of `AddPartitionsToTxnRequest.transactions`."""

    transactional_id: str = string("4+")
    producer_id: int = int64("4+")
    producer_epoch: int = int16("4+")
    verify_only: bool = boolean("4+")
    topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, "4+")


class AddPartitionsToTxnRequest(Message, api_key=24, versions="0-5", flexible="3+"):
    """AddPartitionsToTxn (key 24): add partitions to a transaction before it writes to them.

    Clients use versions 0-3 (3 is flexible), with the fields for one transaction. Brokers use 4 and
    5, for many transactions, also to verify that a partition belongs to a transaction (KIP-890).
    """

    transactions: list[AddPartitionsToTxnTransaction] = array(AddPartitionsToTxnTransaction, "4+")
    v3_and_below_transactional_id: str = string("0-3")
    v3_and_below_producer_id: int = int64("0-3")
    v3_and_below_producer_epoch: int = int16("0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, "0-3")


class AddPartitionsToTxnPartitionResult(Message):
    """An element of `AddPartitionsToTxnTopicResult.results_by_partition`."""

    partition_index: int = int32()
    partition_error_code: int = int16()


class AddPartitionsToTxnTopicResult(Message):
    """A topic's results, used in several parts of `AddPartitionsToTxnResponse`."""

    name: str = string()
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = array(
        AddPartitionsToTxnPartitionResult
    )


class AddPartitionsToTxnResult(Message):
    """An element of `AddPartitionsToTxnResponse.results_by_transaction`."""

    transactional_id: str = string("4+")
    topic_results: list[AddPartitionsToTxnTopicResult] = array(AddPartitionsToTxnTopicResult, "4+")


class AddPartitionsToTxnResponse(Message, api_key=24, versions="0-5", flexible="3+"):
    """An AddPartitionsToTxn response."""

    throttle_time_ms: int = int32()
    error_code: int = int16("4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = array(AddPartitionsToTxnResult, "4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array(
        AddPartitionsToTxnTopicResult, "0-3"
    )


class AddOffsetsToTxnRequest(Message, api_key=25, versions="0-4", flexible="3+"):
    """AddOffsetsToTxn (key 25): prepare a transaction to commit offsets of a group.

    Adds the group's partition of `__consumer_offsets` to the transaction. Version 2 may return
    PRODUCER_FENCED, 3 is flexible, 4 may return TRANSACTION_ABORTABLE (KIP-890).
    """

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


class AddOffsetsToTxnResponse(Message, api_key=25, versions="0-4", flexible="3+"):
    """An AddOffsetsToTxn response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()


class EndTxnRequest(Message, api_key=26, versions="0-5", flexible="3+"):
    """EndTxn (key 26): commit or abort a transaction.

    Version 2 may return PRODUCER_FENCED, 3 is flexible. Version 5 increases the producer epoch with
    each transaction, and returns producer id and epoch (KIP-890).
    """

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


class WritableTxnMarkerTopic(Message):
    """An element of `WritableTxnMarker.topics`."""

    name: str = string()
    partition_indexes: list[int] = array(int32)


class WritableTxnMarker(Message):
    """An element of `WriteTxnMarkersRequest.markers`."""

    producer_id: int = int64()
    producer_epoch: int = int16()
    transaction_result: bool = boolean()
    topics: list[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic)
    coordinator_epoch: int = int32()
    transaction_version: int = int8("2+", ignorable=True)


class WriteTxnMarkersRequest(Message, api_key=27, versions="1-2", flexible="1+"):
    """WriteTxnMarkers (key 27): a transaction coordinator makes leaders append markers.

    Sent between brokers, and by the tool that aborts hanging transactions (KIP-664). Always
    flexible. Version 2 adds the transaction version (KIP-1228).
    """

    markers: list[WritableTxnMarker] = array(WritableTxnMarker)


class WritableTxnMarkerPartitionResult(Message):
    """An element of `WritableTxnMarkerTopicResult.partitions`."""

    partition_index: int = int32()
    error_code: int = int16()


class WritableTxnMarkerTopicResult(Message):
    """An element of `WritableTxnMarkerResult.topics`."""

    name: str = string()
    partitions: list[WritableTxnMarkerPartitionResult] = array(WritableTxnMarkerPartitionResult)


class WritableTxnMarkerResult(Message):
    """An element of `WriteTxnMarkersResponse.markers`."""

    producer_id: int = int64()
    topics: list[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult)


class WriteTxnMarkersResponse(Message, api_key=27, versions="1-2", flexible="1+"):
    """A WriteTxnMarkers response."""

    markers: list[WritableTxnMarkerResult] = array(WritableTxnMarkerResult)
