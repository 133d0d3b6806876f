"""Fetch (key 1): read record batches, for consumers and followers.

Version 5 adds log start offsets, 7 incremental sessions (KIP-227), 9 leader epochs (KIP-320), 11
the rack and the preferred replica (KIP-392). Version 12 is flexible and adds diverging epochs
(KIP-595), 13 names topics by id (KIP-516), 15 moves the follower's id and epoch to a tagged struct
(KIP-903), 16 names new leaders in the answer (KIP-951), 17 adds the follower's directory (KIP-853),
18 its high watermark (KIP-1166). Fields with tags from 10000 up are Ottla's own, and are only sent
between brokers.
"""

from uuid import UUID

from ottla.wire.notation import (
    Message,
    array,
    batches,
    boolean,
    int8,
    int16,
    int32,
    int64,
    string,
    struct,
    uuid,
)
from ottla.wire.parts import Records


class ReplicaState(Message):
    """The struct in `FetchRequest.replica_state`."""

    replica_id: int = int32("15+", default=-1)
    replica_epoch: int = int64("15+", default=-1)


class LostOffsets(Message):
    """An element of `FetchPartition.lost`: committed offsets that the follower truncated."""

    start: int = int64()
    end: int = int64()
    leader_epoch: int = int32()
    at_ms: int = int64()


class FetchPartition(Message):
    """An element of `FetchTopic.partitions`."""

    partition: int = int32()
    current_leader_epoch: int = int32("9+", default=-1, ignorable=True)
    fetch_offset: int = int64()
    last_fetched_epoch: int = int32("12+", default=-1)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    partition_max_bytes: int = int32()
    replica_directory_id: UUID = uuid("17+", tag=0, ignorable=True)
    high_watermark: int = int64("18+", default=9223372036854775807, tag=1, ignorable=True)
    # Ottla's own: a nonce by which a follower recognizes the answer to this fetch (rule R-7).
    nonce: int = int64("15+", tag=10000)
    # Ottla's own: committed offsets that the follower has truncated, for the leader's ledger.
    lost: list[LostOffsets] = array(LostOffsets, "15+", tag=10001)
    # Ottla's own: whether the follower's disk had no room for the records of the last answer.
    is_full: bool = boolean("15+", tag=10002)


class FetchTopic(Message):
    """An element of `FetchRequest.topics`."""

    topic: str = string("0-12", ignorable=True)
    topic_id: UUID = uuid("13+", ignorable=True)
    partitions: list[FetchPartition] = array(FetchPartition)


class ForgottenTopic(Message):
    """An element of `FetchRequest.forgotten_topics_data`."""

    topic: str = string("7-12", ignorable=True)
    topic_id: UUID = uuid("13+", ignorable=True)
    partitions: list[int] = array(int32, "7+")


class FetchRequest(Message, api_key=1, versions="4-18", flexible="12+"):
    """A Fetch request."""

    cluster_id: str | None = string("12+", nullable="12+", tag=0, ignorable=True)
    replica_id: int = int32("0-14", default=-1)
    replica_state: ReplicaState = struct(ReplicaState, "15+", tag=1)
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32("3+", default=2147483647, ignorable=True)
    isolation_level: int = int8("4+", ignorable=True)
    session_id: int = int32("7+", ignorable=True)
    session_epoch: int = int32("7+", default=-1, ignorable=True)
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, "7+")
    rack_id: str = string("11+", ignorable=True)


class EpochEndOffset(Message):
    """The struct in `PartitionData.diverging_epoch`."""

    epoch: int = int32("12+", default=-1)
    end_offset: int = int64("12+", default=-1)


class LeaderIdAndEpoch(Message):
    """The struct in `PartitionData.current_leader`."""

    leader_id: int = int32("12+", default=-1)
    leader_epoch: int = int32("12+", default=-1)


class SnapshotId(Message):
    """The struct in `PartitionData.snapshot_id`."""

    end_offset: int = int64(default=-1)
    epoch: int = int32(default=-1)


class AbortedTransaction(Message):
    """An element of `PartitionData.aborted_transactions`."""

    producer_id: int = int64("4+")
    first_offset: int = int64("4+")


class DeletedOffsets(Message):
    """An element of `PartitionData.deleted`; `counts` are numbers of offsets by cause."""

    start: int = int64()
    end: int = int64()
    first_ms: int = int64()
    last_ms: int = int64()
    causes: list[int] = array(int8)
    counts: list[int] = array(int64)


class PartitionData(Message):
    """An element of `FetchableTopicResponse.partitions`."""

    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()
    last_stable_offset: int = int64("4+", default=-1, ignorable=True)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = struct(EpochEndOffset, "12+", tag=0)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, "12+", tag=1)
    snapshot_id: SnapshotId = struct(SnapshotId, "12+", tag=2)
    aborted_transactions: list[AbortedTransaction] | None = array(
        AbortedTransaction, "4+", nullable="4+", ignorable=True
    )
    preferred_read_replica: int = int32("11+", default=-1)
    records: Records = batches(nullable="0+")
    # Ottla's own: the nonce of the follower's fetch that this response answers.
    nonce: int = int64("15+", tag=10000)
    # Ottla's own, for followers: the offset below which the leader's log may have been compacted,
    # and why offsets between the follower's log start offset and the leader's were deleted.
    compacted_below: int = int64("15+", tag=10001)
    deleted: list[DeletedOffsets] = array(DeletedOffsets, "15+", tag=10002)


class FetchableTopicResponse(Message):
    """An element of `FetchResponse.responses`."""

    topic: str = string("0-12", ignorable=True)
    topic_id: UUID = uuid("13+", ignorable=True)
    partitions: list[PartitionData] = array(PartitionData)


class NodeEndpoint(Message):
    """An element of `FetchResponse.node_endpoints`."""

    node_id: int = int32("16+")
    host: str = string("16+")
    port: int = int32("16+")
    rack: str | None = string("16+", nullable="16+")


class FetchResponse(Message, api_key=1, versions="4-18", flexible="12+"):
    """A Fetch response."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("7+", ignorable=True)
    session_id: int = int32("7+")
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "16+", tag=0)
