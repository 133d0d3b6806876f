"""Sends coordinators' answers when their records are committed; splits records into batches."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ottla.base.errors import ErrorCode
from ottla.broker.partitions.partition import Partition
from ottla.broker.runtime.purgatory import Deadline, Purgatory

# The codes that clients get for failed appends, as in Kafka.
APPEND_FAILURES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)

# The most bytes that a batch and each record need in addition to keys and values.
_BATCH_OVERHEAD = 61
_RECORD_OVERHEAD = 32


class Ticket:
    """Receives the answer to a command. Exactly one of `give` and `fail` is called, once.

    `failed` converts an error code to an answer.
    """

    __slots__ = ("_failed", "give")

    # The type of the answer depends on the command.
    def __init__(self, give: Callable[[Any], None], failed: Callable[[ErrorCode], Any]) -> None:
        self.give = give
        self._failed = failed

    def fail(self, code: ErrorCode) -> None:
        """Give the answer for an error code."""
        self.give(self._failed(code))


class CoordinatorReply(Protocol):
    """An answer from a coordinator core, and its ticket, a `Ticket`."""

    @property
    def ticket(self) -> Any: ...

    @property
    def message(self) -> Any: ...


class Uncommitted:
    """Replies that wait for the high watermark, up to a timeout."""

    __slots__ = ("_deadline", "_purgatory", "_replies", "_timeout_ms")

    def __init__(
        self, replies: Sequence[CoordinatorReply], purgatory: Purgatory, timeout_ms: int
    ) -> None:
        self._replies: Sequence[CoordinatorReply] | None = replies
        self._purgatory = purgatory
        self._timeout_ms = timeout_ms
        self._deadline: Deadline | None = None

    def wait(self, partition: Partition, end: int) -> None:
        """Answer when all records below `end` are committed."""
        self._deadline = self._purgatory.schedule(self._timeout_ms, self._on_timeout)
        partition.on_high_watermark(end, self._on_committed)

    def _on_committed(self, code: ErrorCode) -> None:
        replies, self._replies = self._replies, None
        if replies is None:
            return
        if self._deadline is not None:
            self._purgatory.cancel(self._deadline)
        if code is ErrorCode.NONE:
            give(replies)
        else:
            fail(replies, APPEND_FAILURES.get(code, code))

    def _on_timeout(self) -> None:
        replies, self._replies = self._replies, None
        if replies is not None:
            fail(replies, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def give_when_committed(
    replies: Sequence[CoordinatorReply], partition: Partition, purgatory: Purgatory, timeout_ms: int
) -> None:
    """Give the replies when all records now in the partition are committed."""
    end = partition.log_end_offset
    if partition.high_watermark >= end:
        give(replies)
    else:
        Uncommitted(replies, purgatory, timeout_ms).wait(partition, end)


def give(replies: Sequence[CoordinatorReply]) -> None:
    """Give the replies at once."""
    for reply in replies:
        reply.ticket.give(reply.message)


def fail(replies: Sequence[CoordinatorReply], code: ErrorCode) -> None:
    """Give an error instead of the replies."""
    for reply in replies:
        reply.ticket.fail(code)


def split(
    records: Sequence[tuple[bytes, bytes | None]], max_bytes: int
) -> list[list[tuple[bytes | None, bytes | None]]]:
    """Cut records into batches of at most `max_bytes`; a larger record has its own batch."""
    batches: list[list[tuple[bytes | None, bytes | None]]] = [[]]
    room = max_bytes - _BATCH_OVERHEAD
    for key, value in records:
        size = len(key) + len(value or b"") + _RECORD_OVERHEAD
        if size > room and batches[-1]:
            batches.append([])
            room = max_bytes - _BATCH_OVERHEAD
        batches[-1].append((key, value))
        room -= size
    return batches
