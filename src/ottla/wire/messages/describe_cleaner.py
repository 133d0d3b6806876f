"""DescribeCleaner (key 1008, Ottla's own): the work and failures of a broker's log cleaner.

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
