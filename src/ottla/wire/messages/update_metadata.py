"""UpdateMetadata (key 6): the controller sends live brokers and partition leaders to a broker.

As in Kafka 3.9, between brokers only. Version 1 lists several endpoints of a broker, 2 adds the
rack, 3 names listeners, 4 adds offline replicas, 5 groups partitions by topic and names the
receiver's epoch (KIP-380), 6 is flexible, 7 adds topic ids (KIP-516), 8 a KRaft controller and the
type (KIP-866). The fields with tags from 10000 up are Ottla's own.
"""

from uuid import UUID

from ottla.wire.notation import Message, array, boolean, int8, int16, int32, int64, string, uuid


class UpdateMetadataPartitionState(Message):
    """An element of `UpdateMetadataTopicState.partition_states`."""

    topic_name: str = string("0-4", ignorable=True)
    partition_index: int = int32()
    controller_epoch: int = int32()
    leader: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(int32)
    # Version of the partition's state in the store.
    zk_version: int = int32()
    replicas: list[int] = array(int32)
    offline_replicas: list[int] = array(int32, "4+", ignorable=True)
    # See `metadata.image.PartitionImage`.
    elr: list[int] = array(int32, "8+", tag=10000)
    last_known_elr: list[int] = array(int32, "8+", tag=10001)


class UpdateMetadataTopicState(Message):
    """An element of `UpdateMetadataRequest.topic_states`."""

    topic_name: str = string("5+")
    topic_id: UUID = uuid("7+", ignorable=True)
    partition_states: list[UpdateMetadataPartitionState] = array(UpdateMetadataPartitionState, "5+")


class UpdateMetadataEndpoint(Message):
    """An element of `UpdateMetadataBroker.endpoints`."""

    port: int = int32("1+")
    host: str = string("1+")
    listener: str = string("3+", ignorable=True)
    security_protocol: int = int16("1+")


class UpdateMetadataBroker(Message):
    """An element of `UpdateMetadataRequest.live_brokers`."""

    id: int = int32()
    v0_host: str = string("0", ignorable=True)
    v0_port: int = int32("0", ignorable=True)
    endpoints: list[UpdateMetadataEndpoint] = array(UpdateMetadataEndpoint, "1+", ignorable=True)
    rack: str | None = string("2+", nullable="0+", ignorable=True)
    # The broker epoch: fetches and handshakes of the broker with another epoch are fenced.
    epoch: int = int64("8+", default=-1, tag=10000)


class UpdateMetadataRequest(Message, api_key=6, versions="0-8", flexible="6+"):
    """An UpdateMetadata request. Type 2: it has the whole cluster; type 1: the changes."""

    controller_id: int = int32()
    is_k_raft_controller: bool = boolean("8+")
    type: int = int8("8+", tag=0)
    controller_epoch: int = int32()
    broker_epoch: int = int64("5+", default=-1, ignorable=True)
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = array(
        UpdateMetadataPartitionState, "0-4"
    )
    topic_states: list[UpdateMetadataTopicState] = array(UpdateMetadataTopicState, "5+")
    live_brokers: list[UpdateMetadataBroker] = array(UpdateMetadataBroker)


class UpdateMetadataResponse(Message, api_key=6, versions="0-8", flexible="6+"):
    """An UpdateMetadata response."""

    error_code: int = int16()
