"""StreamsGroupHeartbeat (key 88): join, stay and leave as a Kafka Streams member (KIP-1071).

Always flexible. A null field means unchanged.

Some parts of request and response have the same name; here those of the response end in `Response`:
EndpointResponse, TaskIdsResponse.
"""

from ottla.wire.notation import (
    Message,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    string,
    struct,
    uint16,
)


class KeyValue(Message):
    """What `StreamsGroupHeartbeatRequest.client_tags` and `TopicInfo.topic_configs` hold."""

    key: str = string()
    value: str = string()


class TopicInfo(Message):
    """Shared by several parts of `StreamsGroupHeartbeatRequest`."""

    name: str = string()
    partitions: int = int32()
    replication_factor: int = int16()
    topic_configs: list[KeyValue] = array(KeyValue)


class Endpoint(Message):
    """The struct in `StreamsGroupHeartbeatRequest.user_endpoint`."""

    host: str = string()
    port: int = uint16()


class TaskOffset(Message):
    """Shared by several parts of `StreamsGroupHeartbeatRequest`."""

    subtopology_id: str = string()
    partition: int = int32()
    offset: int = int64()


class TaskIds(Message):
    """Shared by several parts of `StreamsGroupHeartbeatRequest`."""

    subtopology_id: str = string()
    partitions: list[int] = array(int32)


class CopartitionGroup(Message):
    """An element of `Subtopology.copartition_groups`."""

    source_topics: list[int] = array(int16)
    source_topic_regex: list[int] = array(int16)
    repartition_source_topics: list[int] = array(int16)


class Subtopology(Message):
    """An element of `Topology.subtopologies`."""

    subtopology_id: str = string()
    source_topics: list[str] = array(string)
    source_topic_regex: list[str] = array(string)
    state_changelog_topics: list[TopicInfo] = array(TopicInfo)
    repartition_sink_topics: list[str] = array(string)
    repartition_source_topics: list[TopicInfo] = array(TopicInfo)
    copartition_groups: list[CopartitionGroup] = array(CopartitionGroup)


class Topology(Message):
    """The struct in `StreamsGroupHeartbeatRequest.topology`."""

    epoch: int = int32()
    subtopologies: list[Subtopology] = array(Subtopology)


class StreamsGroupHeartbeatRequest(Message, api_key=88, versions="0", flexible="0+"):
    """A StreamsGroupHeartbeat request."""

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    endpoint_information_epoch: int = int32()
    instance_id: str | None = string(nullable="0+")
    rack_id: str | None = string(nullable="0+")
    rebalance_timeout_ms: int = int32(default=-1)
    topology: Topology | None = struct(Topology, nullable="0+")
    active_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+")
    standby_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+")
    warmup_tasks: list[TaskIds] | None = array(TaskIds, nullable="0+")
    process_id: str | None = string(nullable="0+")
    user_endpoint: Endpoint | None = struct(Endpoint, nullable="0+")
    client_tags: list[KeyValue] | None = array(KeyValue, nullable="0+")
    task_offsets: list[TaskOffset] | None = array(TaskOffset, nullable="0+")
    task_end_offsets: list[TaskOffset] | None = array(TaskOffset, nullable="0+")
    shutdown_application: bool = boolean()


class Status(Message):
    """An element of `StreamsGroupHeartbeatResponse.status`."""

    status_code: int = int8()
    status_detail: str = string()


class TopicPartition(Message):
    """Shared by several parts of `StreamsGroupHeartbeatResponse`."""

    topic: str = string()
    partitions: list[int] = array(int32)


class TaskIdsResponse(Message):
    """Shared by several parts of `StreamsGroupHeartbeatResponse`."""

    subtopology_id: str = string()
    partitions: list[int] = array(int32)


class EndpointResponse(Message):
    """The struct in `EndpointToPartitions.user_endpoint`."""

    host: str = string()
    port: int = uint16()


class EndpointToPartitions(Message):
    """An element of `StreamsGroupHeartbeatResponse.partitions_by_user_endpoint`."""

    user_endpoint: EndpointResponse = struct(EndpointResponse)
    active_partitions: list[TopicPartition] = array(TopicPartition)
    standby_partitions: list[TopicPartition] = array(TopicPartition)


class StreamsGroupHeartbeatResponse(Message, api_key=88, versions="0", flexible="0+"):
    """A StreamsGroupHeartbeat response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    member_id: str = string()
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    acceptable_recovery_lag: int = int32()
    task_offset_interval_ms: int = int32()
    status: list[Status] | None = array(Status, nullable="0+")
    active_tasks: list[TaskIdsResponse] | None = array(TaskIdsResponse, nullable="0+")
    standby_tasks: list[TaskIdsResponse] | None = array(TaskIdsResponse, nullable="0+")
    warmup_tasks: list[TaskIdsResponse] | None = array(TaskIdsResponse, nullable="0+")
    endpoint_information_epoch: int = int32()
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = array(
        EndpointToPartitions, nullable="0+"
    )
