"""Messages to create, extend and delete topics, and to delete records."""

from uuid import UUID

from ottla.wire.notation import Message, array, boolean, int8, int16, int32, int64, string, uuid


class CreatableReplicaAssignment(Message):
    """An element of `CreatableTopic.assignments`."""

    partition_index: int = int32()
    broker_ids: list[int] = array(int32)


class CreatableTopicConfig(Message):
    """An element of `CreatableTopic.configs`."""

    name: str = string()
    value: str | None = string(nullable="0+")


class CreatableTopic(Message):
    """An element of `CreateTopicsRequest.topics`."""

    name: str = string()
    num_partitions: int = int32()
    replication_factor: int = int16()
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig)


class CreateTopicsRequest(Message, api_key=19, versions="2-7", flexible="5+"):
    """CreateTopics (key 19): create topics with their settings.

    Version 4 allows -1 for the broker's default partition count and replication factor (KIP-464).
    Version 5 is flexible and returns the settings (KIP-525), 7 returns the topic id.
    """

    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = int32(default=60000)
    validate_only: bool = boolean("1+")


class CreatableTopicConfigs(Message):
    """An element of `CreatableTopicResult.configs`."""

    name: str = string("5+")
    value: str | None = string("5+", nullable="5+")
    read_only: bool = boolean("5+")
    config_source: int = int8("5+", default=-1, ignorable=True)
    is_sensitive: bool = boolean("5+")


class CreatableTopicResult(Message):
    """An element of `CreateTopicsResponse.topics`."""

    name: str = string()
    topic_id: UUID = uuid("7+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string("1+", nullable="0+", ignorable=True)
    topic_config_error_code: int = int16("5+", tag=0, ignorable=True)
    num_partitions: int = int32("5+", default=-1, ignorable=True)
    replication_factor: int = int16("5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = array(
        CreatableTopicConfigs, "5+", nullable="5+", ignorable=True
    )


class CreateTopicsResponse(Message, api_key=19, versions="2-7", flexible="5+"):
    """A CreateTopics response."""

    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[CreatableTopicResult] = array(CreatableTopicResult)


class CreatePartitionsAssignment(Message):
    """An element of `CreatePartitionsTopic.assignments`."""

    broker_ids: list[int] = array(int32)


class CreatePartitionsTopic(Message):
    """An element of `CreatePartitionsRequest.topics`."""

    name: str = string()
    count: int = int32()
    assignments: list[CreatePartitionsAssignment] | None = array(
        CreatePartitionsAssignment, nullable="0+"
    )


class CreatePartitionsRequest(Message, api_key=37, versions="0-3", flexible="2+"):
    """CreatePartitions (key 37): add partitions to topics (KIP-195).

    Version 2 is flexible, 3 may be throttled (KIP-599).
    """

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()


class CreatePartitionsTopicResult(Message):
    """An element of `CreatePartitionsResponse.results`."""

    name: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class CreatePartitionsResponse(Message, api_key=37, versions="0-3", flexible="2+"):
    """A CreatePartitions response."""

    throttle_time_ms: int = int32()
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)


class DeleteTopicState(Message):
    """An element of `DeleteTopicsRequest.topics`."""

    name: str | None = string("6+", nullable="6+")
    topic_id: UUID = uuid("6+")


class DeleteTopicsRequest(Message, api_key=20, versions="1-6", flexible="4+"):
    """DeleteTopics (key 20): delete topics by name or id.

    Version 4 is flexible, 5 adds an error message and may be throttled (KIP-599), 6 names topics by
    name or id in a separate field (KIP-516).
    """

    topics: list[DeleteTopicState] = array(DeleteTopicState, "6+")
    topic_names: list[str] = array(string, "0-5", ignorable=True)
    timeout_ms: int = int32()


class DeletableTopicResult(Message):
    """An element of `DeleteTopicsResponse.responses`."""

    name: str | None = string(nullable="6+")
    topic_id: UUID = uuid("6+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string("5+", nullable="5+", ignorable=True)


class DeleteTopicsResponse(Message, api_key=20, versions="1-6", flexible="4+"):
    """A DeleteTopics response."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)


class DeleteRecordsPartition(Message):
    """An element of `DeleteRecordsTopic.partitions`."""

    partition_index: int = int32()
    offset: int = int64()


class DeleteRecordsTopic(Message):
    """An element of `DeleteRecordsRequest.topics`."""

    name: str = string()
    partitions: list[DeleteRecordsPartition] = array(DeleteRecordsPartition)


class DeleteRecordsRequest(Message, api_key=21, versions="0-2", flexible="2+"):
    """DeleteRecords (key 21): advance the log start offset of partitions (KIP-107).

    Offset -1 means the high watermark. The low watermark in the answer is the new log start offset.
    Version 2 is flexible.
    """

    topics: list[DeleteRecordsTopic] = array(DeleteRecordsTopic)
    timeout_ms: int = int32()


class DeleteRecordsPartitionResult(Message):
    """An element of `DeleteRecordsTopicResult.partitions`."""

    partition_index: int = int32()
    low_watermark: int = int64()
    error_code: int = int16()


class DeleteRecordsTopicResult(Message):
    """An element of `DeleteRecordsResponse.topics`."""

    name: str = string()
    partitions: list[DeleteRecordsPartitionResult] = array(DeleteRecordsPartitionResult)


class DeleteRecordsResponse(Message, api_key=21, versions="0-2", flexible="2+"):
    """A DeleteRecords response."""

    throttle_time_ms: int = int32()
    topics: list[DeleteRecordsTopicResult] = array(DeleteRecordsTopicResult)
