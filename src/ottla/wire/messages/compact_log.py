"""CompactLog (key 1003, Ottla's own): how dirty a replica's log is, and cleaning it on demand.

Each broker cleans its own replicas, so each replica is asked. Sizes in bytes, times in
milliseconds since 1970, -1 for never or unknown.
"""

from ottla.wire.notation import Message, array, boolean, float64, int8, int16, int32, int64, string


class CompactLogRequest(Message, api_key=1003, versions="0", flexible="0+"):
    """A CompactLog request."""

    topic: str = string()
    partition: int = int32()
    # 0 only describes; 1 also estimates a cleaning; 2 has the log cleaned soon.
    action: int = int8()


class CompactionPass(Message):
    """An element of `CompactLogResponse.passes`: what a cleaning did, or would do."""

    # Offsets below are clean after it.
    end: int = int64()
    # Of keys in what was dirty.
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
    """The answer to it."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    log_start_offset: int = int64(default=-1)
    log_end_offset: int = int64(default=-1)
    # [first_dirty, end) is dirty and may be cleaned; what ends it.
    first_dirty: int = int64(default=-1)
    end: int = int64(default=-1)
    bound: str = string()
    clean_bytes: int = int64()
    dirty_bytes: int = int64()
    ratio_min: float = float64()
    is_overdue: bool = boolean()
    # Whether the broker cleans anything at all, and whether it cleans this now.
    is_enabled: bool = boolean()
    is_running: bool = boolean()
    # Up to which offset a client asked to have it cleaned; -1: none did.
    wanted_end: int = int64(default=-1)
    # Passes since the broker started; the last one, and then the one that was asked about.
    pass_count: int = int64()
    passes: list[CompactionPass] = array(CompactionPass)
    estimates: list[CompactionPass] = array(CompactionPass)
    # Why the last attempt failed, null where it did not.
    failure: str | None = string(nullable="0+")
