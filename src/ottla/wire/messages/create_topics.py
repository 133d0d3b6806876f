"""CreateTopics (key 19): create topics with their settings.

Version 4 allows -1 for the broker's default partition count and replication factor (KIP-464), 5
answers with the settings (KIP-525) and is flexible, 7 answers with the topic id.
"""

from uuid import UUID

from ottla.wire.notation import Message, array, boolean, int8, int16, int32, string, uuid


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
    """A CreateTopics request."""

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
