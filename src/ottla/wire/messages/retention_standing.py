"""RetentionStanding (key 1013, Ottla's own): when records are deleted, and which groups delay it.

The partition's leader answers. Sizes in bytes, times in ms, -1 for never or unknown.
"""

from ottla.wire.notation import Message, array, float64, int16, int32, int64, string


class RetentionStandingRequest(Message, api_key=1013, versions="0", flexible="0+"):
    """A RetentionStanding request."""

    topic: str = string()
    partition: int = int32()
    # How long are the records at these offsets kept?
    offsets: list[int] = array(int64)
    # The group that will read them: retention may wait for it.
    group_id: str = string()


class OffsetDeadline(Message):
    """An element of `RetentionStandingResponse.deadlines`, in the order of the offsets."""

    offset: int = int64()
    # Until the record there may be deleted, at the present rate of writing; 0 for at any time.
    left_ms: int = int64(default=-1)
    setting: str | None = string(nullable="0+")


class ReaderStanding(Message):
    """An element of `RetentionStandingResponse.readers`: a group that is waited for."""

    group_id: str = string()
    committed: int = int64(default=-1)


class RetentionStandingResponse(Message, api_key=1013, versions="0", flexible="0+"):
    """The answer to it."""

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
    # Groups that are waited for, where they stand, and what is kept for them alone at present.
    readers: list[ReaderStanding] = array(ReaderStanding)
    held_bytes: int = int64()
    held_since_ms: int = int64(default=-1)
