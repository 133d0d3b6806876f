"""DescribeCleaner (key 1008, Ottla's own): how a broker's log cleaner is.

Sizes in bytes, times in milliseconds since 1970, -1 for never.
"""

from ottla.wire.notation import Message, array, int16, int32, int64, string


class DescribeCleanerRequest(Message, api_key=1008, versions="0", flexible="0+"):
    """A DescribeCleaner request."""


class FailedLog(Message):
    """An element of `DescribeCleanerResponse.failed`: a log whose last attempts failed."""

    topic: str = string()
    partition: int = int32()
    why: str = string()
    attempts: int = int32()
    since_ms: int = int64(default=-1)
    retry_at_ms: int = int64(default=-1)


class LastPass(Message):
    """An element of `DescribeCleanerResponse.last`."""

    topic: str = string()
    partition: int = int32()
    at_ms: int = int64(default=-1)
    elapsed_ms: int = int64()
    bytes_read: int = int64()
    bytes_kept: int = int64()


class DescribeCleanerResponse(Message, api_key=1008, versions="0", flexible="0+"):
    """The answer to it."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    # Logs cleaned at a time; 0 where the cleaner is switched off.
    threads: int = int32()
    # Compacted logs; of these, being cleaned, and waiting for it with so many dirty bytes.
    logs: int = int32()
    running: int = int32()
    due: int = int32()
    due_bytes: int = int64()
    # Since the broker started.
    pass_count: int = int64()
    failure_count: int = int64()
    # One, or none.
    last: list[LastPass] = array(LastPass)
    failed: list[FailedLog] = array(FailedLog)
