"""Records of `__share_group_state`: the progress of share groups in partitions (KIP-932).

The version of a key is the record's type: 0 is a snapshot, 1 an update of the snapshot before it.
"""

from uuid import UUID

from ottla.wire.notation import Message, array, int8, int16, int32, int64, string, uuid


class ShareSnapshotKey(Message, versions="0"):
    """The key of a snapshot."""

    group_id: str = string()
    topic_id: UUID = uuid()
    partition: int = int32()


class StateBatch(Message):
    """An element of the lists in `ShareSnapshotValue` and `ShareUpdateValue`."""

    first_offset: int = int64()
    last_offset: int = int64()
    delivery_state: int = int8()
    delivery_count: int = int16()


class ShareSnapshotValue(Message, versions="0", flexible="0+"):
    """The whole state of a share partition."""

    snapshot_epoch: int = int32()
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(default=-1, tag=0)
    create_timestamp: int = int64()
    write_timestamp: int = int64()
    state_batches: list[StateBatch] = array(StateBatch)


class ShareUpdateKey(Message, versions="1"):
    """The key of an update."""

    group_id: str = string()
    topic_id: UUID = uuid()
    partition: int = int32()


class ShareUpdateValue(Message, versions="0", flexible="0+"):
    """The changes to a share partition since the snapshot with the same epoch."""

    snapshot_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(default=-1, tag=0)
    state_batches: list[StateBatch] = array(StateBatch)
