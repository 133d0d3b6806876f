"""ElectLeaders (key 43): hold an election for partitions.

Version 0 elects preferred leaders (KIP-183), 1 adds unclean elections (KIP-460), 2 is flexible.
Null means all partitions.
"""

from ottla.wire.notation import Message, array, int8, int16, int32, string


class TopicPartitions(Message):
    """An element of `ElectLeadersRequest.topic_partitions`."""

    topic: str = string()
    partitions: list[int] = array(int32)


class ElectLeadersRequest(Message, api_key=43, versions="0-2", flexible="2+"):
    """An ElectLeaders request."""

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
