"""WriteTxnMarkers (key 27): a transaction coordinator makes leaders append markers.

Sent between brokers, and by the tool that aborts hanging transactions (KIP-664). Always flexible.
Version 2 adds the transaction version (KIP-1228).
"""

from ottla.wire.notation import Message, array, boolean, int8, int16, int32, int64, string


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
    """A WriteTxnMarkers request."""

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
