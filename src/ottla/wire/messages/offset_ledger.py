"""Messages that explain missing offsets, all of them Ottla's own."""

from uuid import UUID

from ottla.wire.notation import Message, array, int8, int16, int32, int64, string, uuid


class OffsetLedgerRequest(Message, api_key=1012, versions="0-1", flexible="0+"):
    """OffsetLedger (key 1012, Ottla's own): count the offsets of a range by what happened to them.

    Sent to the partition's leader, which answers for its own replica. Times are in ms since 1970;
    -1 means unknown.
    """

    topic: str = string()
    partition: int = int32()
    # The range is [start, end); an end of -1 means the high watermark.
    start: int = int64()
    end: int = int64(default=-1)


class CompactedOffsets(Message):
    """An element of `OffsetLedgerResponse.compacted_by`: passes from `since` to `pass_number`.

    Pass 0 means passes of the leader from which this replica was copied, -1 means passes before the
    ledger began.
    """

    pass_number: int = int64()
    since: int = int64()
    at_ms: int = int64(default=-1)
    count: int = int64()


class DeletedRange(Message):
    """An element of `OffsetLedgerResponse.deleted_by`; `counts` are numbers of offsets by cause."""

    start: int = int64()
    end: int = int64()
    causes: list[int] = array(int8)
    counts: list[int] = array(int64)
    first_ms: int = int64(default=-1)
    last_ms: int = int64(default=-1)


class LostRange(Message):
    """An element of `OffsetLedgerResponse.lost_by`: offsets lost by an unclean election."""

    start: int = int64()
    end: int = int64()
    # The epoch of the elected leader, which did not have these offsets.
    leader_epoch: int = int32()
    at_ms: int = int64(default=-1)


class DeletionEvidence(Message):
    """An element of `OffsetLedgerResponse.evidence`: what decided one deletion of this replica.

    `by` is a setting with its value, or a principal. `newest_ms` is the greatest timestamp of the
    deleted segment, `arrived_ms` when its last batch was written.
    """

    start: int = int64()
    end: int = int64()
    at_ms: int = int64(default=-1)
    by: str = string()
    newest_ms: int = int64(default=-1)
    arrived_ms: int = int64(default=-1)


class OffsetLedgerResponse(Message, api_key=1012, versions="0-1", flexible="0+"):
    """An OffsetLedger response. All counts are numbers of offsets in [start, end)."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    broker_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)
    start: int = int64(default=-1)
    end: int = int64(default=-1)
    log_start_offset: int = int64(default=-1)
    high_watermark: int = int64(default=-1)
    log_end_offset: int = int64(default=-1)
    data: int = int64()
    control: int = int64()
    aborted: int = int64()
    undecided: int = int64()
    compacted: int = int64()
    deleted: int = int64()
    lost: int = int64()
    unexplained: int = int64()
    # Lost offsets that later records use again; each is also counted for its later use.
    replaced: int = int64()
    compacted_by: list[CompactedOffsets] = array(CompactedOffsets)
    deleted_by: list[DeletedRange] = array(DeletedRange)
    lost_by: list[LostRange] = array(LostRange)
    evidence: list[DeletionEvidence] = array(DeletionEvidence, versions="1+")


class LogEndsPartition(Message):
    """An element of `LogEndsTopic.partitions`."""

    partition_index: int = int32()
    # The epoch without a leader. A replica in an older epoch may still follow the previous leader.
    leader_epoch: int = int32()


class LogEndsTopic(Message):
    """An element of `LogEndsRequest.topics`."""

    topic_name: str = string()
    topic_id: UUID = uuid()
    partitions: list[LogEndsPartition] = array(LogEndsPartition)


class LogEndsRequest(Message, api_key=1002, versions="0", flexible="0+"):
    """LogEnds (key 1002, Ottla's own): a controller asks leaderless replicas for log end offsets.

    If ISR and ELR are empty, and all replicas that were last in them are back, the replica with the
    highest (latest leader epoch, log end offset) has all committed records.
    """

    controller_id: int = int32()
    controller_epoch: int = int32()
    broker_epoch: int = int64(default=-1)
    topics: list[LogEndsTopic] = array(LogEndsTopic)


class LogEnd(Message):
    """An element of `LogEndsTopicResult.partitions`."""

    partition_index: int = int32()
    error_code: int = int16()
    # The latest leader epoch in the log's epoch cache; its last record may have an earlier epoch.
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
