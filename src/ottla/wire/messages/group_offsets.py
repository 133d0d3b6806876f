"""Messages to commit, read and delete the offsets of groups."""

from uuid import UUID

from ottla.wire.notation import Message, array, boolean, int16, int32, int64, string, uuid


class OffsetCommitRequestPartition(Message):
    """An element of `OffsetCommitRequestTopic.partitions`."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32("6+", default=-1, ignorable=True)
    committed_metadata: str | None = string(nullable="0+")


class OffsetCommitRequestTopic(Message):
    """An element of `OffsetCommitRequest.topics`."""

    name: str = string("0-9", ignorable=True)
    topic_id: UUID = uuid("10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition)


class OffsetCommitRequest(Message, api_key=8, versions="2-10", flexible="8+"):
    """OffsetCommit (key 8): commit offsets of a group.

    Versions 2-4 have a retention time, 6 adds leader epochs, 7 adds static members (KIP-345), 8 is
    flexible, 9 adds the member epoch of the consumer protocol (KIP-848), 10 names topics by id.
    """

    group_id: str = string()
    generation_id_or_member_epoch: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string("1+", ignorable=True)
    group_instance_id: str | None = string("7+", nullable="7+")
    retention_time_ms: int = int64("2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic)


class OffsetCommitResponsePartition(Message):
    """The outcome for a partition in responses that commit or delete offsets."""

    partition_index: int = int32()
    error_code: int = int16()


class OffsetCommitResponseTopic(Message):
    """An element of `OffsetCommitResponse.topics`."""

    name: str = string("0-9", ignorable=True)
    topic_id: UUID = uuid("10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition)


class OffsetCommitResponse(Message, api_key=8, versions="2-10", flexible="8+"):
    """An OffsetCommit response."""

    throttle_time_ms: int = int32("3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic)


class OffsetFetchRequestTopic(Message):
    """An element of `OffsetFetchRequest.topics` and of `OffsetFetchRequestGroup.topics`."""

    name: str = string("0-9", ignorable=True)
    topic_id: UUID = uuid("10+", ignorable=True)
    partition_indexes: list[int] = array(int32)


class OffsetFetchRequestGroup(Message):
    """An element of `OffsetFetchRequest.groups`."""

    group_id: str = string("8+")
    member_id: str | None = string("9+", nullable="9+", ignorable=True)
    member_epoch: int = int32("9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopic] | None = array(
        OffsetFetchRequestTopic, "8+", nullable="8+"
    )


class OffsetFetchRequest(Message, api_key=9, versions="1-10", flexible="6+"):
    """OffsetFetch (key 9): read the committed offsets of groups.

    From version 2 on null topics mean all topics. Version 5 adds leader epochs, 6 is flexible, 7
    can require that no transaction is pending (KIP-447), 8 adds fields for many groups (KIP-709), 9
    adds member epochs (KIP-848), 10 names topics by id.
    """

    group_id: str = string("0-7")
    topics: list[OffsetFetchRequestTopic] | None = array(
        OffsetFetchRequestTopic, "0-7", nullable="2-7"
    )
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, "8+")
    require_stable: bool = boolean("7+")


class OffsetFetchResponsePartition(Message):
    """An element of `OffsetFetchResponseTopic.partitions`."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32("5+", default=-1, ignorable=True)
    metadata: str | None = string(nullable="0+")
    error_code: int = int16()


class OffsetFetchResponseTopic(Message):
    """An element of `OffsetFetchResponse.topics` and of `OffsetFetchResponseGroup.topics`."""

    name: str = string("0-9", ignorable=True)
    topic_id: UUID = uuid("10+", ignorable=True)
    partitions: list[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition)


class OffsetFetchResponseGroup(Message):
    """An element of `OffsetFetchResponse.groups`."""

    group_id: str = string("8+")
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, "8+")
    error_code: int = int16("8+")


class OffsetFetchResponse(Message, api_key=9, versions="1-10", flexible="6+"):
    """An OffsetFetch response."""

    throttle_time_ms: int = int32("3+", ignorable=True)
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, "0-7")
    error_code: int = int16("2-7", ignorable=True)
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, "8+")


class OffsetDeleteRequestPartition(Message):
    """An element of `OffsetDeleteRequestTopic.partitions`."""

    partition_index: int = int32()


class OffsetDeleteRequestTopic(Message):
    """An element of `OffsetDeleteRequest.topics`."""

    name: str = string()
    partitions: list[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition)


class OffsetDeleteRequest(Message, api_key=47, versions="0"):
    """OffsetDelete (key 47): delete offsets of topics that no member subscribes to (KIP-496)."""

    group_id: str = string()
    topics: list[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic)


class OffsetDeleteResponseTopic(Message):
    """An element of `OffsetDeleteResponse.topics`."""

    name: str = string()
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition)


class OffsetDeleteResponse(Message, api_key=47, versions="0"):
    """An OffsetDelete response."""

    error_code: int = int16()
    throttle_time_ms: int = int32(ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic)


class TxnOffsetCommitRequestPartition(Message):
    """An element of `TxnOffsetCommitRequestTopic.partitions`."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32("2+", default=-1, ignorable=True)
    committed_metadata: str | None = string(nullable="0+")


class TxnOffsetCommitRequestTopic(Message):
    """An element of `TxnOffsetCommitRequest.topics`."""

    name: str = string()
    partitions: list[TxnOffsetCommitRequestPartition] = array(TxnOffsetCommitRequestPartition)


class TxnOffsetCommitRequest(Message, api_key=28, versions="0-5", flexible="3+"):
    """TxnOffsetCommit (key 28): commit offsets of a group in a transaction.

    Version 2 adds leader epochs. Version 3 is flexible and adds the member's generation, by which
    zombies are fenced (KIP-447). From 5 on the request also adds the group's partition of
    `__consumer_offsets` to the transaction (KIP-890).
    """

    transactional_id: str = string()
    group_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id: int = int32("3+", default=-1)
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+")
    topics: list[TxnOffsetCommitRequestTopic] = array(TxnOffsetCommitRequestTopic)


class TxnOffsetCommitResponseTopic(Message):
    """An element of `TxnOffsetCommitResponse.topics`."""

    name: str = string()
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition)


class TxnOffsetCommitResponse(Message, api_key=28, versions="0-5", flexible="3+"):
    """A TxnOffsetCommit response."""

    throttle_time_ms: int = int32()
    topics: list[TxnOffsetCommitResponseTopic] = array(TxnOffsetCommitResponseTopic)
