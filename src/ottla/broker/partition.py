"""One partition this broker leads: its log, its term, its high watermark, and who waits for it."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicId, TopicPartition
from ottla.broker.flush import Flusher
from ottla.record.builder import BatchBuilder
from ottla.record.header import TRANSACTIONAL_FLAG, BatchHeader, read_header
from ottla.storage.config import LogConfig
from ottla.storage.errors import StorageError
from ottla.storage.log import Appended, Log

# After so much or so long a partition is flushed in a way that saves a recovery from reading it.
_CHECKPOINT_BYTES = 16 << 20
_CHECKPOINT_MS = 60_000


class Waiter(Protocol):
    """A fetch that waits for more records."""

    def wake(self) -> None:
        """There may be enough now; looked at once per turn."""
        ...


class Partition:
    """The leader's view of a partition.

    Invariant: log_start_offset <= high_watermark <= log_end_offset. With group commit the high
    watermark is the flushed end, else the log's end.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: TopicId,
        log: Log,
        leader_epoch: int,
        flusher: Flusher,
        clock: Clock,
        *,
        group_commit: bool,
        on_storage_error: Callable[["Partition", StorageError], None],
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.leader_epoch = leader_epoch
        self.high_watermark = log.recovery_point if group_commit else log.log_end_offset
        self._flusher = flusher
        self._clock = clock
        self._group_commit = group_commit
        self._on_storage_error = on_storage_error
        # (offset, callback) of those who wait for the high watermark, in the order of offsets.
        self._acks: deque[tuple[int, Callable[[ErrorCode], None]]] = deque()
        # In the order they came.
        self.waiters: dict[Waiter, None] = {}
        # Where, how large and when the log was at its last checkpoint.
        self._checkpoint_offset = log.log_end_offset
        self._checkpoint_bytes = log.size_bytes
        self._checkpoint_ms = clock.now_ms()
        # Why the log cannot be used, once its disk has failed.
        self.failure: str | None = None
        self._failure_code = ErrorCode.KAFKA_STORAGE_ERROR

    @property
    def topic(self) -> str:
        return self.topic_partition.topic

    @property
    def index(self) -> int:
        return self.topic_partition.partition

    @property
    def config(self) -> LogConfig:
        return self.log.config

    @property
    def log_start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """Below it no transaction is undecided."""
        return self.log.last_stable_offset(self.high_watermark)

    # Hot: once per batch.
    def append(self, buffer: memoryview | bytearray, header: BatchHeader, now_ms: int) -> Appended:
        """Append a validated batch, patched in place. Raises OttlaError."""
        if self.failure is not None:
            raise OttlaError(self._failure_code, self.failure)
        if header.attributes & TRANSACTIONAL_FLAG:
            raise OttlaError(
                ErrorCode.INVALID_TXN_STATE,
                f"{self.topic_partition} is in no transaction: this broker does not serve them yet",
            )
        log = self.log
        if buffer.__class__ is not memoryview:
            buffer = memoryview(buffer)
        try:
            appended = log.append_as_leader(buffer, header, self.leader_epoch, now_ms)
        except StorageError as error:
            self._on_storage_error(self, error)
            raise
        if self._group_commit:
            self._flusher.mark_dirty(self)
            if self.waiters:
                self._flusher.hurry()
        else:
            self._advance(log.log_end_offset)
            if log.rolled or log.unflushed_records >= log.config.flush_messages:
                self._flusher.mark_dirty(self)
        return appended

    def on_high_watermark(self, offset: int, callback: Callable[[ErrorCode], None]) -> None:
        """Call `callback` once the high watermark is at `offset` or above: with NONE, or an error.

        Called at once where it is already so.
        """
        if self.high_watermark >= offset:
            callback(ErrorCode.NONE)
        else:
            self._acks.append((offset, callback))
            self._flusher.hurry()

    def add_waiter(self, waiter: Waiter) -> None:
        """Wake `waiter` whenever the high watermark moves."""
        self.waiters[waiter] = None
        self._flusher.hurry()

    def check_leader_epoch(self, epoch: int) -> None:
        """Refuse a client whose view of the leader is of another term (KIP-320). -1: unknown."""
        if epoch < 0 or epoch == self.leader_epoch:
            return
        if epoch < self.leader_epoch:
            raise OttlaError(
                ErrorCode.FENCED_LEADER_EPOCH,
                f"{self.topic_partition} is in leader epoch {self.leader_epoch}, not {epoch}",
            )
        raise OttlaError(
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            f"{self.topic_partition} is in leader epoch {self.leader_epoch}, {epoch} is not known",
        )

    def check_readable(self) -> None:
        """Raise OttlaError where the log cannot be used any more."""
        if self.failure is not None:
            raise OttlaError(self._failure_code, self.failure)

    def epoch_of(self, offset: int) -> int:
        """The leader epoch in which the record at `offset` was appended; -1 where unknown."""
        return self.log.leader_epochs.epoch_of(offset)

    def advance_log_start(self, offset: int) -> None:
        """Make everything below `offset` unreadable; retention deletes the files."""
        self.check_readable()
        self.log.advance_log_start(offset)
        self._wake()

    def append_internal(
        self, records: Sequence[tuple[bytes | None, bytes | None]]
    ) -> tuple[int, int]:
        """Append the broker's own records as one batch; return its first and last offset.

        Pairs of key and value. Raises OttlaError.
        """
        assert records
        now_ms = self._clock.now_ms()
        builder = BatchBuilder()
        for key, value in records:
            builder.append(now_ms, key, value)
        batch = builder.build()
        appended = self.append(memoryview(batch), read_header(batch), now_ms)
        return appended.base_offset, appended.last_offset

    def flush_soon(self) -> None:
        """Have everything appended so far flushed by the next job."""
        if self.failure is None and self.log.recovery_point < self.log.log_end_offset:
            self._flusher.mark_dirty(self)

    def checkpoint_soon(self, now_ms: int) -> bool:
        """Have a recovery start here, if it would have much to read otherwise; whether it is so."""
        size_bytes = self.log.size_bytes
        grown_bytes = size_bytes - self._checkpoint_bytes
        changed = self.log.log_end_offset != self._checkpoint_offset
        due = grown_bytes >= _CHECKPOINT_BYTES or now_ms - self._checkpoint_ms >= _CHECKPOINT_MS
        if self.failure is not None or not changed or not due:
            return False
        self._checkpoint_bytes = size_bytes
        self._checkpoint_ms = now_ms
        self._checkpoint_offset = self.log.log_end_offset
        self._flusher.mark_for_checkpoint(self)
        return True

    def on_flushed(self) -> None:
        """A flush job of this log is done, and the log knows its new recovery point."""
        if self._group_commit and self.failure is None:
            self._advance(self.log.recovery_point)

    def on_flush_failed(self, error: StorageError) -> None:
        """The disk lost what it was given: the log can no longer be trusted."""
        self._on_storage_error(self, error)

    def fail(self, reason: str, code: ErrorCode = ErrorCode.KAFKA_STORAGE_ERROR) -> None:
        """Serve no more; tell everyone who waits."""
        self.failure = reason
        self._failure_code = code
        self._flusher.forget(self)
        acks, self._acks = self._acks, deque()
        for _, callback in acks:
            callback(code)
        self._wake()

    def _advance(self, offset: int) -> None:
        if offset <= self.high_watermark:
            return
        self.high_watermark = offset
        acks = self._acks
        while acks and acks[0][0] <= offset:
            acks.popleft()[1](ErrorCode.NONE)
        if self.waiters:
            self._wake()

    def _wake(self) -> None:
        for waiter in list(self.waiters):
            waiter.wake()
