"""LeaderAndIsr (key 4): the controller sends a broker the partitions it leads or follows.

As in Kafka 3.9, between brokers only. Version 1 says whether a replica is new, 2 groups partitions
by topic and names the receiver's epoch (KIP-380), 3 adds reassignments (KIP-455), 4 is flexible, 5
adds topic ids and the type (KIP-516), 6 unclean elections (KIP-704), 7 a KRaft controller
(KIP-866). The fields with tags from 10000 up are Ottla's own.
"""

from uuid import UUID

from ottla.wire.notation import Message, array, boolean, int8, int16, int32, int64, string, uuid


class LeaderAndIsrPartitionState(Message):
    """An element of `LeaderAndIsrTopicState.partition_states`."""

    topic_name: str = string("0-1", ignorable=True)
    partition_index: int = int32()
    controller_epoch: int = int32()
    leader: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(int32)
    # Version of the partition's state in the store.
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


class LeaderAndIsrRequest(Message, api_key=4, versions="0-7", flexible="4+"):
    """A LeaderAndIsr request. Type 1: it has all partitions of the receiver; type 0: some."""

    controller_id: int = int32()
    is_k_raft_controller: bool = boolean("7+")
    controller_epoch: int = int32()
    broker_epoch: int = int64("2+", default=-1, ignorable=True)
    type: int = int8("5+")
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = array(
        LeaderAndIsrPartitionState, "0-1"
    )
    topic_states: list[LeaderAndIsrTopicState] = array(LeaderAndIsrTopicState, "2+")
    live_leaders: list[LeaderAndIsrLiveLeader] = array(LeaderAndIsrLiveLeader)


class LeaderAndIsrPartitionError(Message):
    """An element of `LeaderAndIsrTopicError.partition_errors`."""

    topic_name: str = string("0-4", ignorable=True)
    partition_index: int = int32()
    error_code: int = int16()


class LeaderAndIsrTopicError(Message):
    """An element of `LeaderAndIsrResponse.topics`."""

    topic_id: UUID = uuid("5+")
    partition_errors: list[LeaderAndIsrPartitionError] = array(LeaderAndIsrPartitionError, "5+")


class LeaderAndIsrResponse(Message, api_key=4, versions="0-7", flexible="4+"):
    """A LeaderAndIsr response."""

    error_code: int = int16()
    partition_errors: list[LeaderAndIsrPartitionError] = array(LeaderAndIsrPartitionError, "0-4")
    topics: list[LeaderAndIsrTopicError] = array(LeaderAndIsrTopicError, "5+")
