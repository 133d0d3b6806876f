"""AlterPartitionReassignments (key 45): move partitions to other brokers (KIP-455).

Null replicas cancel a reassignment. Always flexible. Version 1 can forbid a change of the
replication factor (KIP-860).
"""

from ottla.wire.notation import Message, array, boolean, int16, int32, string


class ReassignablePartition(Message):
    """An element of `ReassignableTopic.partitions`."""

    partition_index: int = int32()
    replicas: list[int] | None = array(int32, nullable="0+")


class ReassignableTopic(Message):
    """An element of `AlterPartitionReassignmentsRequest.topics`."""

    name: str = string()
    partitions: list[ReassignablePartition] = array(ReassignablePartition)


class AlterPartitionReassignmentsRequest(Message, api_key=45, versions="0-1", flexible="0+"):
    """An AlterPartitionReassignments request."""

    timeout_ms: int = int32(default=60000)
    allow_replication_factor_change: bool = boolean("1+", default=True)
    topics: list[ReassignableTopic] = array(ReassignableTopic)


class ReassignablePartitionResponse(Message):
    """An element of `ReassignableTopicResponse.partitions`."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class ReassignableTopicResponse(Message):
    """An element of `AlterPartitionReassignmentsResponse.responses`."""

    name: str = string()
    partitions: list[ReassignablePartitionResponse] = array(ReassignablePartitionResponse)


class AlterPartitionReassignmentsResponse(Message, api_key=45, versions="0-1", flexible="0+"):
    """An AlterPartitionReassignments response."""

    throttle_time_ms: int = int32()
    allow_replication_factor_change: bool = boolean("1+", default=True, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse)
