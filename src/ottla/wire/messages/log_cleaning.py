"""Messages about compaction and retention, all of them Ottla's own."""

from ottla.wire.notation import Message, array, boolean, float64, int8, int16, int32, int64, string


class CompactLogRequest(Message, api_key=1003, versions="0", flexible="0+"):
    """CompactLog (key 1003, Ottla's own): report how dirty a replica's log is; clean it on request.

    Each broker cleans its own replicas, so the request is sent to each replica. Sizes are in bytes,
    times in milliseconds since 1970; -1 means never or unknown.
    """

    topic: str = string()
    partition: int = int32()
    # 0 describes the log, 1 also estimates a cleaning, 2 describes the log and cleans it soon.
    action: int = int8()


class CompactionPass(Message):
    """An element of `CompactLogResponse.passes` or `estimates`: a cleaning pass or its estimate."""

    # Offsets below this one are clean after the pass.
    end: int = int64()
    # The number of distinct keys in the dirty part.
    keys: int = int64()
    records_read: int = int64()
    records_kept: int = int64()
    records_aborted: int = int64()
    tombstones_dropped: int = int64()
    bytes_read: int = int64()
    bytes_kept: int = int64()
    elapsed_ms: int = int64()
    at_ms: int = int64(default=-1)


class CompactLogResponse(Message, api_key=1003, versions="0", flexible="0+"):
    """A CompactLog response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    log_start_offset: int = int64(default=-1)
    log_end_offset: int = int64(default=-1)
    # Offsets in [first_dirty, end) are dirty and may be cleaned. `bound` is the reason why later
    # offsets may not.
    first_dirty: int = int64(default=-1)
    end: int = int64(default=-1)
    bound: str = string()
    clean_bytes: int = int64()
    dirty_bytes: int = int64()
    ratio_min: float = float64()
    is_overdue: bool = boolean()
    # Whether the broker's cleaner is enabled, and whether it cleans this log now.
    is_enabled: bool = boolean()
    is_running: bool = boolean()
    # The offset up to which a client requested a cleaning; -1 without such a request.
    wanted_end: int = int64(default=-1)
    # The number of passes over this log since the broker started, and the last passes.
    pass_count: int = int64()
    passes: list[CompactionPass] = array(CompactionPass)
    estimates: list[CompactionPass] = array(CompactionPass)
    # Why the last attempt failed; null if it succeeded.
    failure: str | None = string(nullable="0+")


class DescribeCleanerRequest(Message, api_key=1008, versions="0-1", flexible="0+"):
    """DescribeCleaner (key 1008, Ottla's own): report the work and failures of the log cleaner.

    Sizes are in bytes, times in milliseconds since 1970; -1 means never.
    """


class FailedLog(Message):
    """An element of `DescribeCleanerResponse.failed`: a log whose last attempts failed."""

    topic: str = string()
    partition: int = int32()
    why: str = string()
    attempts: int = int32()
    since_ms: int = int64(default=-1)
    retry_at_ms: int = int64(default=-1)


class LastPass(Message):
    """An element of `DescribeCleanerResponse.last`: the latest pass over any log."""

    topic: str = string()
    partition: int = int32()
    at_ms: int = int64(default=-1)
    elapsed_ms: int = int64()
    bytes_read: int = int64()
    bytes_kept: int = int64()


class DescribeCleanerResponse(Message, api_key=1008, versions="0-1", flexible="0+"):
    """A DescribeCleaner response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    # How many logs are cleaned at a time; 0 if the cleaner is disabled.
    threads: int = int32()
    # The number of compacted logs; how many of them are being cleaned and how many are due; and the
    # dirty bytes of those that are due.
    logs: int = int32()
    running: int = int32()
    due: int = int32()
    due_bytes: int = int64()
    # The numbers of passes and of failed attempts since the broker started.
    pass_count: int = int64()
    failure_count: int = int64()
    # The last pass; empty if there was none yet.
    last: list[LastPass] = array(LastPass)
    failed: list[FailedLog] = array(FailedLog)
    # The broker's clock, to which the other times belong.
    now_ms: int = int64("1+", default=-1, ignorable=True)


class RetentionStandingRequest(Message, api_key=1013, versions="0", flexible="0+"):
    """RetentionStanding (key 1013, Ottla's own): report when records will be deleted.

    The response also says what delays the deletion. Sent to the partition's leader. Sizes are in
    bytes, times in ms; -1 means never or unknown.
    """

    topic: str = string()
    partition: int = int32()
    # The offsets whose deletion times are requested.
    offsets: list[int] = array(int64)
    # A group that is going to read the offsets; retention may wait for it.
    group_id: str = string()


class OffsetDeadline(Message):
    """An element of `RetentionStandingResponse.deadlines`, in the order of the offsets."""

    offset: int = int64()
    # How long until the record may be deleted at the present write rate; 0 means at any time.
    left_ms: int = int64(default=-1)
    setting: str | None = string(nullable="0+")


class ReaderStanding(Message):
    """An element of `RetentionStandingResponse.readers`: a group that retention waits for."""

    group_id: str = string()
    committed: int = int64(default=-1)


class RetentionStandingResponse(Message, api_key=1013, versions="0", flexible="0+"):
    """A RetentionStanding response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    broker_id: int = int32(default=-1)
    log_start_offset: int = int64(default=-1)
    log_end_offset: int = int64(default=-1)
    size_bytes: int = int64()
    bytes_per_second: float = float64()
    cleanup_policy: str = string()
    retention_ms: int = int64(default=-1)
    retention_bytes: int = int64(default=-1)
    hold_max_bytes: int = int64(default=-1)
    hold_max_ms: int = int64(default=-1)
    deadlines: list[OffsetDeadline] = array(OffsetDeadline)
    # The groups that retention waits for, with their committed offsets; the bytes that are kept
    # only for them, and since when.
    readers: list[ReaderStanding] = array(ReaderStanding)
    held_bytes: int = int64()
    held_since_ms: int = int64(default=-1)


class ReaderOffset(Message):
    """An element of `ReaderLagTopic.readers`: the committed offset of a reader in a partition."""

    partition: int = int32()
    offset: int = int64()
    # Whose offset it is; retention may wait for it.
    group_id: str = string()


class ReaderLagTopic(Message):
    """An element of `ReaderLagRequest.topics`."""

    name: str = string()
    readers: list[ReaderOffset] = array(ReaderOffset)


class ReaderLagRequest(Message, api_key=1030, versions="0", flexible="0+"):
    """ReaderLag (key 1030, Ottla's own): report how far readers are from the end, and from loss.

    The coordinator of the groups sends it to the leaders of the partitions that they read.
    """

    topics: list[ReaderLagTopic] = array(ReaderLagTopic)


class ReaderPlace(Message):
    """An element of `ReaderLagTopicResult.places`, in the order of the readers.

    Times are in milliseconds, since 1970 for `since_ms`; -1 means unknown, or never for `left_ms`.
    """

    error_code: int = int16()
    log_start_offset: int = int64(default=-1)
    high_watermark: int = int64(default=-1)
    # The timestamp of the first record that is unread; -1 if all are read.
    since_ms: int = int64(default=-1)
    # How long until that record may be deleted.
    left_ms: int = int64(default=-1)


class ReaderLagTopicResult(Message):
    """An element of `ReaderLagResponse.topics`, in the order of the request."""

    places: list[ReaderPlace] = array(ReaderPlace)


class ReaderLagResponse(Message, api_key=1030, versions="0", flexible="0+"):
    """A ReaderLag response."""

    error_code: int = int16()
    topics: list[ReaderLagTopicResult] = array(ReaderLagTopicResult)
