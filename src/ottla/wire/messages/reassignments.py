"""Messages to move partitions to other replicas, and to elect their leaders."""

from ottla.wire.notation import Message, array, boolean, int8, int16, int32, string


class ReassignablePartition(Message):
    """An element of `ReassignableTopic.partitions`."""

    partition_index: int = int32()
    replicas: list[int] | None = array(int32, nullable="0+")


class ReassignableTopic(Message):
    """An element of `AlterPartitionReassignmentsRequest.topics`."""

    name: str = string()
    partitions: list[ReassignablePartition] = array(ReassignablePartition)


class AlterPartitionReassignmentsRequest(Message, api_key=45, versions="0-1", flexible="0+"):
    """AlterPartitionReassignments (key 45): move partitions to other brokers (KIP-455).

    Null replicas cancel a reassignment. Always flexible. Version 1 can forbid a change of the
    replication factor (KIP-860).
    """

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


class ListPartitionReassignmentsTopics(Message):
    """An element of `ListPartitionReassignmentsRequest.topics`."""

    name: str = string()
    partition_indexes: list[int] = array(int32)


class ListPartitionReassignmentsRequest(Message, api_key=46, versions="0", flexible="0+"):
    """ListPartitionReassignments (key 46): list the reassignments in progress (KIP-455).

    Always flexible. Null means all topics.
    """

    timeout_ms: int = int32(default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = array(
        ListPartitionReassignmentsTopics, nullable="0+"
    )


class OngoingPartitionReassignment(Message):
    """An element of `OngoingTopicReassignment.partitions`."""

    partition_index: int = int32()
    replicas: list[int] = array(int32)
    adding_replicas: list[int] = array(int32)
    removing_replicas: list[int] = array(int32)


class OngoingTopicReassignment(Message):
    """An element of `ListPartitionReassignmentsResponse.topics`."""

    name: str = string()
    partitions: list[OngoingPartitionReassignment] = array(OngoingPartitionReassignment)


class ListPartitionReassignmentsResponse(Message, api_key=46, versions="0", flexible="0+"):
    """A ListPartitionReassignments response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    topics: list[OngoingTopicReassignment] = array(OngoingTopicReassignment)


class TopicPartitions(Message):
    """An element of `ElectLeadersRequest.topic_partitions`."""

    topic: str = string()
    partitions: list[int] = array(int32)


class ElectLeadersRequest(Message, api_key=43, versions="0-2", flexible="2+"):
    """ElectLeaders (key 43): hold an election for partitions.

    Version 0 elects preferred leaders (KIP-183), 1 adds unclean elections (KIP-460), 2 is flexible.
    Null means all partitions.
    """

    election_type: int = int8("1+")
    topic_partitions: list[TopicPartitions] | None = array(TopicPartitions, nullable="0+")
    timeout_ms: int = int32(default=60000)


class PartitionResult(Message):
    """An element of `ReplicaElectionResult.partition_result`."""

    partition_id: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class ReplicaElectionResult(Message):
    """An element of `ElectLeadersResponse.replica_election_results`."""

    topic: str = string()
    partition_result: list[PartitionResult] = array(PartitionResult)


class ElectLeadersResponse(Message, api_key=43, versions="0-2", flexible="2+"):
    """An ElectLeaders response."""

    throttle_time_ms: int = int32()
    error_code: int = int16("1+")
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)
