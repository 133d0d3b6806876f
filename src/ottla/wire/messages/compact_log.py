"""CompactLog (key 1003, Ottla's own): describe how dirty a replica's log is, or clean it on demand.

Each broker cleans its own replicas, so the request is sent to each replica. Sizes in bytes, times
in milliseconds since 1970, -1 for never or unknown.
"""

from ottla.wire.notation import Message, array, boolean, float64, int8, int16, int32, int64, string


class CompactLogRequest(Message, api_key=1003, versions="0", flexible="0+"):
    """A CompactLog request."""

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
