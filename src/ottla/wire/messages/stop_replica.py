"""StopReplica (key 5): the controller makes a broker stop replicas, and delete them if asked.

As in Kafka 3.9, between brokers only. Version 1 groups partitions by topic and names the receiver's
epoch (KIP-380), 2 is flexible, 3 adds leader epochs (KIP-570), 4 a KRaft controller (KIP-866).
"""

from ottla.wire.notation import Message, array, boolean, int16, int32, int64, string


class StopReplicaPartitionV0(Message):
    """An element of `StopReplicaRequest.ungrouped_partitions`."""

    topic_name: str = string("0")
    partition_index: int = int32("0")


class StopReplicaTopicV1(Message):
    """An element of `StopReplicaRequest.topics`."""

    name: str = string("1-2")
    partition_indexes: list[int] = array(int32, "1-2")


class StopReplicaPartitionState(Message):
    """An element of `StopReplicaTopicState.partition_states`."""

    partition_index: int = int32("3+")
    leader_epoch: int = int32("3+", default=-1)
    delete_partition: bool = boolean("3+")


class StopReplicaTopicState(Message):
    """An element of `StopReplicaRequest.topic_states`."""

    topic_name: str = string("3+")
    partition_states: list[StopReplicaPartitionState] = array(StopReplicaPartitionState, "3+")


class StopReplicaRequest(Message, api_key=5, versions="0-4", flexible="2+"):
    """A StopReplica request."""

    controller_id: int = int32()
    is_k_raft_controller: bool = boolean("4+")
    controller_epoch: int = int32()
    broker_epoch: int = int64("1+", default=-1, ignorable=True)
    delete_partitions: bool = boolean("0-2")
    ungrouped_partitions: list[StopReplicaPartitionV0] = array(StopReplicaPartitionV0, "0")
    topics: list[StopReplicaTopicV1] = array(StopReplicaTopicV1, "1-2")
    topic_states: list[StopReplicaTopicState] = array(StopReplicaTopicState, "3+")


class StopReplicaPartitionError(Message):
    """An element of `StopReplicaResponse.partition_errors`."""

    topic_name: str = string()
    partition_index: int = int32()
    error_code: int = int16()


class StopReplicaResponse(Message, api_key=5, versions="0-4", flexible="2+"):
    """A StopReplica response."""

    error_code: int = int16()
    partition_errors: list[StopReplicaPartitionError] = array(StopReplicaPartitionError)
