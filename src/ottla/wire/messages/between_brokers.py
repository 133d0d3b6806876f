"""Messages between brokers: the handshake, and the requests of the controller."""

from uuid import UUID

from ottla.wire.notation import (
    Message,
    array,
    binary,
    boolean,
    int8,
    int16,
    int32,
    int64,
    string,
    uuid,
)


class BrokerHandshakeRequest(Message, api_key=1000, versions="0", flexible="0+"):
    """BrokerHandshake (key 1000, Ottla's own): proves that both brokers know the cluster's secret.

    It is sent twice on each new connection between brokers, before any other request. The first
    request has a challenge and no proof. The second one repeats it with the proof for the challenge
    in the first response. `ottla.broker.cluster.handshake` describes the proof.
    """

    cluster_id: str = string()
    broker_id: int = int32()
    broker_epoch: int = int64()
    # The broker to which the sender meant to connect.
    receiver_id: int = int32()
    challenge: bytes = binary()
    proof: bytes = binary()


class BrokerHandshakeResponse(Message, api_key=1000, versions="0", flexible="0+"):
    """A BrokerHandshake response; the first one on a connection has the receiver's proof."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    broker_id: int = int32()
    broker_epoch: int = int64()
    challenge: bytes = binary()
    proof: bytes = binary()


class LeaderAndIsrPartitionState(Message):
    """An element of `LeaderAndIsrTopicState.partition_states`."""

    partition_index: int = int32()
    controller_epoch: int = int32()
    leader: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(int32)
    # The version of the partition's state in the store.
    partition_epoch: int = int32()
    replicas: list[int] = array(int32)
    adding_replicas: list[int] = array(int32, "3+", ignorable=True)
    removing_replicas: list[int] = array(int32, "3+", ignorable=True)
    is_new: bool = boolean("1+", ignorable=True)
    leader_recovery_state: int = int8("6+")
    # See `metadata.image.PartitionImage`.
    elr: list[int] = array(int32, "7+", tag=10000)
    last_known_elr: list[int] = array(int32, "7+", tag=10001)
    nonce: int = int64("7+", tag=10002)
    # The leader's broker epoch when it was elected.
    leader_broker_epoch: int = int64("7+", tag=10003)
    unclean_epoch: int = int32("7+", default=-1, tag=10004)


class LeaderAndIsrTopicState(Message):
    """An element of `LeaderAndIsrRequest.topic_states`."""

    topic_name: str = string("2+")
    topic_id: UUID = uuid("5+", ignorable=True)
    partition_states: list[LeaderAndIsrPartitionState] = array(LeaderAndIsrPartitionState, "2+")


class LeaderAndIsrLiveLeader(Message):
    """An element of `LeaderAndIsrRequest.live_leaders`."""

    broker_id: int = int32()
    host_name: str = string()
    port: int = int32()


class LeaderAndIsrRequest(Message, api_key=4, versions="7", flexible="4+"):
    """LeaderAndIsr (key 4): the controller sends a broker the partitions that it leads or follows.

    As in Kafka 3.9, between brokers only. Type 1 means that the request has all partitions of the
    receiver, type 0 that it has some. Fields with tags from 10000 up are Ottla's own.
    """

    controller_id: int = int32()
    is_k_raft_controller: bool = boolean("7+")
    controller_epoch: int = int32()
    broker_epoch: int = int64("2+", default=-1, ignorable=True)
    type: int = int8("5+")
    topic_states: list[LeaderAndIsrTopicState] = array(LeaderAndIsrTopicState, "2+")
    live_leaders: list[LeaderAndIsrLiveLeader] = array(LeaderAndIsrLiveLeader)


class LeaderAndIsrPartitionError(Message):
    """An element of `LeaderAndIsrTopicError.partition_errors`."""

    partition_index: int = int32()
    error_code: int = int16()


class LeaderAndIsrTopicError(Message):
    """An element of `LeaderAndIsrResponse.topics`."""

    topic_id: UUID = uuid("5+")
    partition_errors: list[LeaderAndIsrPartitionError] = array(LeaderAndIsrPartitionError, "5+")


class LeaderAndIsrResponse(Message, api_key=4, versions="7", flexible="4+"):
    """A LeaderAndIsr response."""

    error_code: int = int16()
    topics: list[LeaderAndIsrTopicError] = array(LeaderAndIsrTopicError, "5+")


class StopReplicaPartitionState(Message):
    """An element of `StopReplicaTopicState.partition_states`."""

    partition_index: int = int32("3+")
    leader_epoch: int = int32("3+", default=-1)
    delete_partition: bool = boolean("3+")


class StopReplicaTopicState(Message):
    """An element of `StopReplicaRequest.topic_states`."""

    topic_name: str = string("3+")
    partition_states: list[StopReplicaPartitionState] = array(StopReplicaPartitionState, "3+")
    # Set if the topic is deleted: its logs may go to the trash.
    topic_id: UUID = uuid("3+", tag=10000)


class StopReplicaRequest(Message, api_key=5, versions="3-4", flexible="2+"):
    """StopReplica (key 5): the controller makes a broker stop replicas, and perhaps delete them.

    As in Kafka 3.9, between brokers only. Version 4 says whether the controller is a KRaft one
    (KIP-866).
    """

    controller_id: int = int32()
    is_k_raft_controller: bool = boolean("4+")
    controller_epoch: int = int32()
    broker_epoch: int = int64("1+", default=-1, ignorable=True)
    topic_states: list[StopReplicaTopicState] = array(StopReplicaTopicState, "3+")


class StopReplicaPartitionError(Message):
    """An element of `StopReplicaResponse.partition_errors`."""

    topic_name: str = string()
    partition_index: int = int32()
    error_code: int = int16()
    # The size of a log that went to the trash; -1 if it is not there.
    kept_bytes: int = int64("3+", default=-1, tag=10000)


class StopReplicaResponse(Message, api_key=5, versions="3-4", flexible="2+"):
    """A StopReplica response."""

    error_code: int = int16()
    partition_errors: list[StopReplicaPartitionError] = array(StopReplicaPartitionError)


class UpdateMetadataPartitionState(Message):
    """An element of `UpdateMetadataTopicState.partition_states`."""

    partition_index: int = int32()
    controller_epoch: int = int32()
    leader: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(int32)
    # The version of the partition's state in the store.
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
    endpoints: list[UpdateMetadataEndpoint] = array(UpdateMetadataEndpoint, "1+", ignorable=True)
    rack: str | None = string("2+", nullable="0+", ignorable=True)
    # The broker epoch. Fetches and handshakes of this broker with another epoch are fenced.
    epoch: int = int64("8+", default=-1, tag=10000)


class UpdateMetadataRequest(Message, api_key=6, versions="5-8", flexible="6+"):
    """UpdateMetadata (key 6): the controller sends live brokers and partition leaders to a broker.

    As in Kafka 3.9, between brokers only. Type 2 means that the request has the whole cluster, type
    1 that it has only changes. Version 6 is flexible, 7 adds topic ids (KIP-516), 8 adds the type
    and whether the controller is a KRaft one (KIP-866). Fields with tags from 10000 up are Ottla's
    own.
    """

    controller_id: int = int32()
    is_k_raft_controller: bool = boolean("8+")
    type: int = int8("8+", tag=0)
    controller_epoch: int = int32()
    broker_epoch: int = int64("5+", default=-1, ignorable=True)
    topic_states: list[UpdateMetadataTopicState] = array(UpdateMetadataTopicState, "5+")
    live_brokers: list[UpdateMetadataBroker] = array(UpdateMetadataBroker)


class UpdateMetadataResponse(Message, api_key=6, versions="5-8", flexible="6+"):
    """An UpdateMetadata response."""

    error_code: int = int16()


class ControlledShutdownRequest(Message, api_key=7, versions="2-3", flexible="3+"):
    """ControlledShutdown (key 7): a broker asks the controller to move its leaders elsewhere.

    As in Kafka 3.9, between brokers only. Version 3 is flexible.
    """

    broker_id: int = int32()
    broker_epoch: int = int64("2+", default=-1, ignorable=True)


class RemainingPartition(Message):
    """An element of `ControlledShutdownResponse.remaining_partitions`."""

    topic_name: str = string()
    partition_index: int = int32()


class ControlledShutdownResponse(Message, api_key=7, versions="2-3", flexible="3+"):
    """A ControlledShutdown response."""

    error_code: int = int16()
    remaining_partitions: list[RemainingPartition] = array(RemainingPartition)
