"""StreamsGroupDescribe (key 89): streams groups, their topology and tasks (KIP-1071).

Always flexible.
"""

from ottla.wire.notation import Message, array, boolean, int16, int32, int64, string, struct, uint16


class StreamsGroupDescribeRequest(Message, api_key=89, versions="0", flexible="0+"):
    """A StreamsGroupDescribe request."""

    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


class Endpoint(Message):
    """The struct in `Member.user_endpoint`."""

    host: str = string()
    port: int = uint16()


class TaskOffset(Message):
    """What `Member.task_offsets` and `Member.task_end_offsets` hold."""

    subtopology_id: str = string()
    partition: int = int32()
    offset: int = int64()


class TaskIds(Message):
    """Shared by several parts of `StreamsGroupDescribeResponse`."""

    subtopology_id: str = string()
    partitions: list[int] = array(int32)


class Assignment(Message):
    """What `Member.assignment` and `Member.target_assignment` hold."""

    active_tasks: list[TaskIds] = array(TaskIds)
    standby_tasks: list[TaskIds] = array(TaskIds)
    warmup_tasks: list[TaskIds] = array(TaskIds)


class KeyValue(Message):
    """What `Member.client_tags` and `TopicInfo.topic_configs` hold."""

    key: str = string()
    value: str = string()


class TopicInfo(Message):
    """Shared by several parts of `StreamsGroupDescribeResponse`."""

    name: str = string()
    partitions: int = int32()
    replication_factor: int = int16()
    topic_configs: list[KeyValue] = array(KeyValue)


class Subtopology(Message):
    """An element of `Topology.subtopologies`."""

    subtopology_id: str = string()
    source_topics: list[str] = array(string)
    repartition_sink_topics: list[str] = array(string)
    state_changelog_topics: list[TopicInfo] = array(TopicInfo)
    repartition_source_topics: list[TopicInfo] = array(TopicInfo)


class Topology(Message):
    """The struct in `DescribedGroup.topology`."""

    epoch: int = int32()
    subtopologies: list[Subtopology] | None = array(Subtopology, nullable="0+")


class Member(Message):
    """An element of `DescribedGroup.members`."""

    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(nullable="0+")
    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    topology_epoch: int = int32()
    process_id: str = string()
    user_endpoint: Endpoint | None = struct(Endpoint, nullable="0+")
    client_tags: list[KeyValue] = array(KeyValue)
    task_offsets: list[TaskOffset] = array(TaskOffset)
    task_end_offsets: list[TaskOffset] = array(TaskOffset)
    assignment: Assignment = struct(Assignment)
    target_assignment: Assignment = struct(Assignment)
    is_classic: bool = boolean()


class DescribedGroup(Message):
    """An element of `StreamsGroupDescribeResponse.groups`."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    topology: Topology | None = struct(Topology, nullable="0+")
    members: list[Member] = array(Member)
    authorized_operations: int = int32(default=-2147483648)


class StreamsGroupDescribeResponse(Message, api_key=89, versions="0", flexible="0+"):
    """A StreamsGroupDescribe response."""

    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
