"""Compaction and retention, as Ottla reports them."""

from ottla.wire.notation import Message, array, boolean, float64, int8, int16, int32, int64, string


class CompactLogRequest(Message, api_key=1003, versions="0", flexible="0+"):
    """CompactLog (key 1003, Ottla's own): how dirty a replica's log is; cleans it on demand.

    Each broker cleans its own replicas, so the request is sent to each replica. Sizes in bytes,
    times in milliseconds since 1970, -1 for never or unknown.
    """

    topic: str = string()
    partition: int = int32()
    # 0: describe; 1: describe and estimate a cleaning; 2: describe and clean the log soon.
    action: int = int8()


class CompactionPass(Message):
    """An element of `CompactLogResponse.passes` or `estimates`: a cleaning, or its estimate."""

    # Offsets below this are clean after the pass.
    end: int = int64()
    # Distinct keys in the dirty part.
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
    # Offsets in [first_dirty, end) are dirty and may be cleaned; `bound` is why not those after.
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
    # Passes over this log since the broker started; the last of them.
    pass_count: int = int64()
    passes: list[CompactionPass] = array(CompactionPass)
    estimates: list[CompactionPass] = array(CompactionPass)
    # Why the last attempt failed; null if it succeeded.
    failure: str | None = string(nullable="0+")


class DescribeCleanerRequest(Message, api_key=1008, versions="0", flexible="0+"):
    """DescribeCleaner (key 1008, Ottla's own): the work and failures of a broker's log cleaner.

    Sizes in bytes, times in milliseconds since 1970, -1 for never.
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


class DescribeCleanerResponse(Message, api_key=1008, versions="0", flexible="0+"):
    """A DescribeCleaner response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    # Logs cleaned at a time; 0 if the cleaner is disabled.
    threads: int = int32()
    # Compacted logs; of these, how many are being cleaned, how many wait for it (due), and the
    # dirty bytes of those that wait.
    logs: int = int32()
    running: int = int32()
    due: int = int32()
    due_bytes: int = int64()
    # Passes and failed attempts since the broker started.
    pass_count: int = int64()
    failure_count: int = int64()
    # One element, or none if there was no pass yet.
    last: list[LastPass] = array(LastPass)
    failed: list[FailedLog] = array(FailedLog)


class RetentionStandingRequest(Message, api_key=1013, versions="0", flexible="0+"):
    """RetentionStanding (key 1013, Ottla's own): when records are deleted; what delays it.

    Sent to the partition's leader. Sizes in bytes, times in ms, -1 for never or unknown.
    """

    topic: str = string()
    partition: int = int32()
    # The offsets whose deletion times are requested.
    offsets: list[int] = array(int64)
    # The group that is going to read them: retention may wait for it.
    group_id: str = string()


class OffsetDeadline(Message):
    """An element of `RetentionStandingResponse.deadlines`, in the order of the offsets."""

    offset: int = int64()
    # Until the record at the offset may be deleted, at the present write rate; 0: at any time.
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
    # Groups that retention waits for, with their committed offsets; the bytes that are kept for
    # them only, and since when.
    readers: list[ReaderStanding] = array(ReaderStanding)
    held_bytes: int = int64()
    held_since_ms: int = int64(default=-1)
