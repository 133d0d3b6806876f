"""RetentionStanding (key 1013, Ottla's own): when records are deleted, and which groups delay it.

Sent to the partition's leader. Sizes in bytes, times in ms, -1 for never or unknown.
"""

from ottla.wire.notation import Message, array, float64, int16, int32, int64, string


class RetentionStandingRequest(Message, api_key=1013, versions="0", flexible="0+"):
    """A RetentionStanding request."""

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
