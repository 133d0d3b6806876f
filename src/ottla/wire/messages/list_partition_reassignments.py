"""ListPartitionReassignments (key 46): the reassignments under way (KIP-455).

Always flexible. Null means all topics.
"""

from ottla.wire.notation import Message, array, int16, int32, string


class ListPartitionReassignmentsTopics(Message):
    """An element of `ListPartitionReassignmentsRequest.topics`."""

    name: str = string()
    partition_indexes: list[int] = array(int32)


class ListPartitionReassignmentsRequest(Message, api_key=46, versions="0", flexible="0+"):
    """A ListPartitionReassignments request."""

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
