"""LogEnds (key 1002, Ottla's own): a controller asks for the log ends of leaderless replicas.

If ISR and ELR are empty, and all replicas that were last in them are back, the replica with the
highest (latest leader epoch, log end offset) has all committed records.
"""

from uuid import UUID

from ottla.wire.notation import Message, array, int16, int32, int64, string, uuid


class LogEndsPartition(Message):
    """An element of `LogEndsTopic.partitions`."""

    partition_index: int = int32()
    # The epoch without a leader; a replica in an older epoch may still follow its former leader.
    leader_epoch: int = int32()


class LogEndsTopic(Message):
    """An element of `LogEndsRequest.topics`."""

    topic_name: str = string()
    topic_id: UUID = uuid()
    partitions: list[LogEndsPartition] = array(LogEndsPartition)


class LogEndsRequest(Message, api_key=1002, versions="0", flexible="0+"):
    """A LogEnds request."""

    controller_id: int = int32()
    controller_epoch: int = int32()
    broker_epoch: int = int64(default=-1)
    topics: list[LogEndsTopic] = array(LogEndsTopic)


class LogEnd(Message):
    """An element of `LogEndsTopicResult.partitions`."""

    partition_index: int = int32()
    error_code: int = int16()
    # The latest leader epoch in the log's epoch cache, which may be later than its last record's.
    latest_epoch: int = int32(default=-1)
    end_offset: int = int64(default=-1)
    start_offset: int = int64(default=-1)


class LogEndsTopicResult(Message):
    """An element of `LogEndsResponse.topics`."""

    topic_name: str = string()
    partitions: list[LogEnd] = array(LogEnd)


class LogEndsResponse(Message, api_key=1002, versions="0", flexible="0+"):
    """A LogEnds response."""

    error_code: int = int16()
    topics: list[LogEndsTopicResult] = array(LogEndsTopicResult)
