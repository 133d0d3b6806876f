"""One partition on this broker: its log, role, high watermark and waiting requests.

The cores in `replica` decide on the role, and `broker.replication.roles` carries out their
decisions. This module serves produce and fetch requests.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import NamedTuple, Protocol

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicId, TopicPartition
from ottla.broker.partitions.flush import CheckpointPace, Flusher
from ottla.broker.partitions.sequence_gaps import SequenceGaps
from ottla.broker.partitions.traffic import Traffic
from ottla.broker.partitions.waiters import Waiter, Watcher
from ottla.broker.runtime.signal import Signal
from ottla.broker.usage.delays import COMMIT_FLUSH, COMMIT_FOLLOWER, Wait
from ottla.ledger.history import Evidence, StartCause
from ottla.metadata.image import PartitionImage
from ottla.record.arrival import BatchRun
from ottla.record.builder import BatchBuilder
from ottla.record.control import EndTransactionMarker, build_marker
from ottla.record.header import (
    CONTROL_FLAG,
    HEADER_SIZE,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    read_header,
)
from ottla.replica.follower import Follower
from ottla.replica.leader import Leader
from ottla.replica.registration import Registration
from ottla.replica.transition import Transition
from ottla.storage.disk.errors import StorageError
from ottla.storage.disk.filesystem import Buffer
from ottla.storage.log.append_run import append_run, can_append_run
from ottla.storage.log.log import Appended, Log
from ottla.storage.producers.state import Guard, ProducerEntry
from ottla.storage.segment.config import LogConfig


class PartitionRoles(Protocol):
    """Carries out changes of a partition's role; `broker.replication.roles` implements it."""

    def on_own_end(self, partition: "Partition", own_end: int) -> None:
        """Note that the log has all records below `own_end`, with group commit flushed."""
        ...

    def on_failure(self, partition: "Partition") -> None:
        """Give up the role, because the log cannot be used."""
        ...

    def on_config(self, partition: "Partition") -> None:
        """Apply changed settings of the partition's topic."""
        ...

    def become(self, partition: "Partition", image: PartitionImage) -> Transition:
        """Take the role that `image` gives this broker, unless a newer one is known."""
        ...

    def give_up(self, partition: "Partition", reason: str) -> None:
        """Give up the role, and answer waiting requests."""
        ...

    @property
    def on_role(self) -> Signal[["Partition"]]:
        """Emitted after a partition's role has changed."""
        ...

    @property
    def registration(self) -> Registration:
        """The broker's id and epochs under which it leads and follows."""
        ...


class OnBehalf(NamedTuple):
    """The producer of the transaction to which a coordinator's records belong.

    `guard` is passed to `Partition.append`.
    """

    producer_id: int
    producer_epoch: int
    guard: Guard


class Partition:
    """A replica of a partition, whether leader or follower.

    Invariants: log_start_offset <= high_watermark <= log_end_offset. At most one of `leader` and
    `follower` is set. `closed` is None if and only if this broker leads and may append.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: TopicId,
        log: Log,
        flusher: Flusher,
        clock: Clock,
        roles: PartitionRoles,
        *,
        high_watermark: int = 0,
        group_commit: bool,
        on_storage_error: Callable[["Partition", StorageError], None],
    ) -> None:
        """`high_watermark` is the value in the checkpoint file."""
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        # The state that determined the role, its leader epoch and version (-1 if there is none).
        self.image: PartitionImage | None = None
        self.leader_epoch = -1
        self.version = -1
        self.leader: Leader | None = None
        self.follower: Follower | None = None
        # Whether the ISR is too small for acks=all.
        self.under_min_isr = False
        # Producers with out-of-order batches in this leader epoch.
        self.gaps = SequenceGaps()
        self.traffic = Traffic()
        self._flusher = flusher
        self._clock = clock
        self._roles = roles
        self.group_commit = group_commit
        self.high_watermark = max(min(high_watermark, self.own_end), log.log_start_offset)
        self._on_storage_error = on_storage_error
        # (offset, callback) of requests that wait for the high watermark, in offset order.
        # A list, because an empty deque takes 600 bytes, and a broker has thousands of partitions.
        self._acks: list[tuple[int, Callable[[ErrorCode], None]]] = []
        # Waiters are woken in the order of arrival.
        self.waiters: dict[Waiter, None] = {}
        self.watchers: dict[Watcher, None] = {}
        # The last reported log start offsets of followers, and requests that wait for their change.
        self.follower_starts: dict[int, int] = {}
        self.start_waiters: dict[Waiter, None] = {}
        # Called once, after the next flush; set by a follower's fetcher.
        self.on_next_flush: Callable[[Partition], None] | None = None
        self._checkpoints = CheckpointPace(log, clock.now_ms())
        # Why the log cannot be used: its disk has failed, or it was closed or deleted.
        self.failure: str | None = None
        # Why this broker does not serve clients as leader; None if it does.
        self.closed: str | None = f"{topic_partition} is not led by this broker"
        self._closed_code = ErrorCode.NOT_LEADER_OR_FOLLOWER

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
        """The last stable offset (LSO): every transaction below it is committed or aborted."""
        return self.log.producers.last_stable_offset(self.high_watermark, self.log.log_start_offset)

    @property
    def own_end(self) -> int:
        """The log end offset; with group commit, the end of the flushed records."""
        log = self.log
        return (
            min(log.flush_state.durable_offset, log.log_end_offset)
            if self.group_commit
            else (log.log_end_offset)
        )

    # Hot: once per batch.
    def append(
        self,
        buffer: memoryview | bytearray,
        header: BatchHeader,
        now_ms: int,
        guard: Guard | None = None,
    ) -> Appended:
        """Append a validated batch, whose buffer is patched in place. Raises OttlaError.

        The first batch of a transaction in this partition needs a `guard`: the proof that the
        coordinator has verified the transaction.
        """
        if self.closed is not None:
            raise OttlaError(self._closed_code, self.closed)
        log = self.log
        attributes = header.attributes
        if attributes & TRANSACTIONAL_FLAG and not attributes & CONTROL_FLAG:
            log.producers.check_open(header, guard)
        if buffer.__class__ is not memoryview:
            buffer = memoryview(buffer)
        appended = self._append_in_order(buffer, header, now_ms)
        self.traffic.produces += 1
        self._on_appended()
        return appended

    # Hot: once per run.
    def append_run(self, run: BatchRun, now_ms: int) -> int | None:
        """Append usual batches of one producer with one write; return the first offset.

        Their buffers are patched in place. Returns None, and appends nothing, if they must be
        appended one by one. Raises OttlaError; then no batch is appended.
        """
        log = self.log
        if self.closed is not None or self.gaps.is_any or not can_append_run(log, run, now_ms):
            return None
        try:
            first_offset = append_run(log, run, self.leader_epoch)
        except StorageError as error:
            self._on_storage_error(self, error)
            self.gaps.on_refused(run.first, error.code)
            raise
        self.traffic.produces += len(run)
        self._on_appended()
        return first_offset

    def _on_appended(self) -> None:
        log = self.log
        leader = self.leader
        if leader is not None and leader.full_end >= 0:
            leader.on_grown(self._clock.monotonic_ms())
        if self.group_commit:
            self._flusher.mark_dirty(self)
            if self.waiters:
                self._flusher.hurry()
        else:
            self._roles.on_own_end(self, log.log_end_offset)
            # The same as `Log.needs_flush`, without a call for each append.
            unflushed = log.log_end_offset - log.flush_state.recovery_point
            if unflushed >= log.config.flush_messages or log.flush_state.rolled:
                self._flusher.mark_dirty(self)
        if self.watchers:
            self._notify_appended()

    def _append_in_order(self, buffer: memoryview, header: BatchHeader, now_ms: int) -> Appended:
        """Append, unless earlier batches of this producer may still arrive."""
        log = self.log
        producer_id = header.producer_id
        if header.base_sequence > 0 <= producer_id and producer_id not in log.producers.entries:
            self.gaps.check(None, header)
        try:
            appended = log.append_as_leader(buffer, header, self.leader_epoch, now_ms)
        except StorageError as error:
            self._on_storage_error(self, error)
            # The producer may retry the batch when there is space.
            self.gaps.on_refused(header, error.code)
            raise
        except OttlaError as error:
            if error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                self.gaps.check(log.producers.entries[producer_id], header)
            elif error.code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                self._check_old_committed(log.producers.entries[producer_id])
            raise
        if self.gaps.is_any:
            self.gaps.on_appended(producer_id)
        return appended

    def _check_old_committed(self, entry: ProducerEntry) -> None:
        """Raise a retriable OttlaError for a duplicate batch that may not be committed yet.

        The batch is older than the batches in `entry`. DUPLICATE_SEQUENCE_NUMBER would be wrong
        here, because producers treat it as an acknowledgement.
        """
        if self.high_watermark < entry.batches[0].first_offset:
            raise OttlaError(
                ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
                f"producer {entry.producer_id} sent a batch again that {self.topic_partition} has,"
                " and that is not yet committed",
            )

    def append_as_follower(self, records: Buffer, now_ms: int) -> None:
        """Append the leader's records. Raises OttlaError; batches before a bad one are kept."""
        log = self.log
        before = log.log_end_offset
        try:
            log.append_as_follower(records, now_ms)
        except StorageError as error:
            self._on_storage_error(self, error)
            raise
        finally:
            if log.log_end_offset != before and self.failure is None:
                self._flush_followed()

    def _flush_followed(self) -> None:
        log = self.log
        if self.group_commit:
            self._flusher.mark_dirty(self)
            self._flusher.hurry()
        elif log.needs_flush:
            self._flusher.mark_dirty(self)

    def on_high_watermark(self, offset: int, callback: Callable[[ErrorCode], None]) -> None:
        """Call `callback` with NONE when the high watermark reaches `offset`, or with an error.

        If it has reached `offset` already, the callback is called at once.
        """
        if self.high_watermark >= offset:
            callback(ErrorCode.NONE)
        elif self.closed is not None:
            callback(self._closed_code)
        else:
            self._acks.append((offset, callback))
            self._flusher.hurry()

    @property
    def is_committed_by_flush(self) -> bool:
        """Whether the next flush will commit the end of the log."""
        return (
            self.high_watermark < self.log.log_end_offset
            and self.group_commit
            and self.leader is not None
            and self.leader.term.commits_alone
        )

    def wait_for_commit(self, *, is_late: bool = False) -> Wait:
        """Say what a batch that has just been committed, or is late, waited for in the end.

        The follower that bounds the high watermark, or else the flush of this broker's own disk.
        """
        leader = self.leader
        followers = () if leader is None else leader.term.required
        if is_late:
            last = min(followers, key=lambda one: one.end, default=None)
        else:
            last = max(followers, key=lambda one: one.fetched_ms, default=None)
            if last is not None and self._clock.monotonic_ms() - last.fetched_ms > 1:
                last = None
        if last is None or last.end > self.own_end:
            return Wait(COMMIT_FLUSH, "", self.topic_partition)
        return Wait(COMMIT_FOLLOWER, str(last.broker_id), self.topic_partition)

    def add_waiter(self, waiter: Waiter) -> None:
        """Wake `waiter` whenever the high watermark advances."""
        self.waiters[waiter] = None
        self._flusher.hurry()

    def check_leader_epoch(self, epoch: int) -> None:
        """Raise OttlaError unless `epoch` is the current leader epoch (KIP-320) or -1, for none."""
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
        """Raise OttlaError if the log cannot be used any more."""
        if self.failure is not None:
            raise OttlaError(self._closed_code, self.failure)

    def check_led(self) -> None:
        """Raise OttlaError unless this broker certainly leads the partition."""
        if self.closed is not None:
            raise OttlaError(self._closed_code, self.closed)

    def check_in_sync(self) -> None:
        """Raise OttlaError if the ISR is smaller than min.insync.replicas (P25)."""
        if self.under_min_isr:
            image = self.image
            count = 0 if image is None else len(image.isr)
            raise OttlaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self.topic_partition} has {count} replica{'' if count == 1 else 's'} in sync,"
                f" and min.insync.replicas is {self.config.min_insync_replicas}",
            )

    def note_refused(self, records: object, code: ErrorCode) -> None:
        """Note a batch that was rejected before validation, and that the producer may retry."""
        if (
            self.leader is not None
            and isinstance(records, memoryview)
            and len(records) >= HEADER_SIZE
        ):
            self.gaps.on_refused(read_header(records), code)

    def latest_offset(self) -> int:
        """Return the latest offset for consumers, the high watermark. Raises OttlaError.

        The error is OFFSET_NOT_AVAILABLE after an election, until this leader has committed all
        records that consumers may have read from the former leader (R-10).
        """
        self.check_led()
        assert self.leader is not None
        latest = self.leader.term.latest_offset()
        if latest is None:
            raise OttlaError(
                ErrorCode.OFFSET_NOT_AVAILABLE,
                f"{self.topic_partition} has a new leader, which waits for its followers' fetches",
            )
        return latest

    def epoch_of(self, offset: int) -> int:
        """Return the leader epoch in which the record at `offset` was appended; -1 if unknown."""
        return self.log.leader_epochs.epoch_of(offset)

    def advance_log_start(self, offset: int, by: str = "") -> None:
        """Advance the log start offset for DeleteRecords; retention deletes the files later.

        `by` is the principal that deletes the records; empty for the broker itself.
        """
        self.check_led()
        start, now_ms = self.log.log_start_offset, self._clock.now_ms()
        self.log.advance_log_start(offset, StartCause.DELETE_RECORDS, now_ms)
        if by:
            self.log.ledger.history.prove(Evidence(start, offset, now_ms, by))
        self._wake()
        self.notify_log_start()

    def notify_log_start(self) -> None:
        """Send followers the new log start offset at once, even if no record is appended."""
        self._notify_appended()

    def on_follower_start(self, broker_id: int, log_start_offset: int) -> None:
        """Note a follower's log start offset, and wake the requests that wait for it."""
        self.follower_starts[broker_id] = log_start_offset
        for waiter in list(self.start_waiters):
            waiter.wake()

    def append_internal(
        self,
        records: Sequence[tuple[bytes | None, bytes | None]],
        producer: "OnBehalf | None" = None,
    ) -> tuple[int, int]:
        """Append the broker's own records as one batch; return its first and last offset.

        `records` are pairs of key and value. With `producer` they belong to its transaction. The
        caller must wait until they are committed. Raises OttlaError.
        """
        assert records
        self.check_in_sync()
        now_ms = self._clock.now_ms()
        if producer is None:
            builder, guard = BatchBuilder(), None
        else:
            producer_id, producer_epoch, guard = producer
            builder = BatchBuilder(
                producer_id=producer_id, producer_epoch=producer_epoch, transactional=True
            )
        for key, value in records:
            builder.append(now_ms, key, value)
        batch = builder.build()
        appended = self.append(memoryview(batch), read_header(batch), now_ms, guard)
        return appended.base_offset, appended.last_offset

    def end_transaction(
        self,
        marker: EndTransactionMarker,
        producer_id: int,
        producer_epoch: int,
        *,
        raises_epoch: bool,
    ) -> int:
        """Append a producer's end-of-transaction marker; return the end offset to be committed.

        For `raises_epoch` see `ProducerStates.check_marker`. Raises OttlaError.
        """
        self.check_led()
        self.check_in_sync()
        now_ms = self._clock.now_ms()
        batch = build_marker(
            marker, producer_id=producer_id, producer_epoch=producer_epoch, timestamp=now_ms
        )
        header = read_header(batch)
        producers = self.log.producers
        if producers.check_marker(header, marker.coordinator_epoch, raises_epoch=raises_epoch):
            self.append(memoryview(batch), header, now_ms)
        return self.log_end_offset

    def flush_soon(self) -> None:
        """Include all unflushed records in the next flush job."""
        if self.failure is None and self.log.flush_state.recovery_point < self.log.log_end_offset:
            self._flusher.mark_dirty(self)

    def checkpoint_soon(self, now_ms: int) -> bool:
        """Request a checkpoint if one is due, see `CheckpointPace`; return whether it is."""
        if self.failure is not None or not self._checkpoints.is_due(self.log, now_ms):
            return False
        self._checkpoints.note(self.log, now_ms)
        self._flusher.mark_for_checkpoint(self)
        return True

    async def hold_flushes(self) -> None:
        """Wait for running flushes of the log, and begin none before `release_flushes`."""
        await self._flusher.hold(self)

    def release_flushes(self) -> None:
        """End `hold_flushes`; what was appended meanwhile is flushed."""
        self._flusher.release(self)

    def on_flushed(self) -> None:
        """Handle a finished flush of this log, whose recovery point has advanced."""
        if self.failure is not None:
            return
        if self.group_commit:
            self._roles.on_own_end(self, self.own_end)
        on_flushed = self.on_next_flush
        if on_flushed is not None:
            on_flushed(self)

    def on_flush_failed(self, error: StorageError) -> None:
        """Stop using the log after a failed flush: the disk may have lost writes."""
        self._on_storage_error(self, error)

    def on_storage_error(self, error: StorageError) -> None:
        """Handle a failed read or write of the log, which may take the log offline."""
        self._on_storage_error(self, error)

    def replace_log(self, log: Log) -> None:
        """Replace the log with a complete, flushed copy in another directory."""
        assert log.log_end_offset == self.log.log_end_offset
        if self.leader is not None:
            self.traffic.end(self.log)
            self.traffic.begin(log)
        self.log = log
        if self.leader is not None:
            self.leader.term.log = log
        if self.follower is not None:
            self.follower.log = log
        self._flusher.forget(self)
        self._checkpoints.on_copied(log)
        self.on_flushed()

    def open_to_clients(self) -> None:
        """Let clients read and append, because this broker leads."""
        assert self.leader is not None
        assert self.failure is None
        if self.closed is not None:
            self.traffic.begin(self.log)
        self.closed = None

    def close_to_clients(
        self, reason: str, code: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER
    ) -> None:
        """Reject clients' reads and appends until the partition is opened again."""
        if self.failure is None:
            self.traffic.end(self.log)
            self.closed = reason
            self._closed_code = code

    def fail_acks(self, code: ErrorCode) -> None:
        """Answer all requests that wait for the high watermark with `code`."""
        acks, self._acks = self._acks, []
        for _, callback in acks:
            callback(code)

    def fail(self, reason: str, code: ErrorCode = ErrorCode.KAFKA_STORAGE_ERROR) -> None:
        """Stop using the log, and answer all waiting requests with `code`."""
        self.close_to_clients(reason, code)
        self.failure = self.failure or reason
        self._flusher.forget(self)
        self.fail_acks(code)
        self._roles.on_failure(self)
        self.wake_all()

    def wake_all(self) -> None:
        """Wake all waiters after a change of the replica's role or state."""
        self._wake()
        for waiter in list(self.start_waiters):
            waiter.wake()
        for watcher in list(self.watchers):
            watcher.on_role()

    def advance(self, offset: int) -> None:
        """Advance the high watermark to `offset`."""
        if offset <= self.high_watermark:
            return
        self.high_watermark = offset
        producers = self.log.producers
        if producers.unreplicated:
            producers.on_high_watermark(offset)
        acks = self._acks
        if acks and acks[0][0] <= offset:
            count = bisect_right(acks, offset, key=itemgetter(0))
            self._acks = acks[count:]
            for _, callback in acks[:count]:
                callback(ErrorCode.NONE)
        if self.waiters:
            self._wake()
        for watcher in self.watchers:
            watcher.on_committed()

    def lower_high_watermark(self, offset: int) -> None:
        """Lower the high watermark to `offset`, the end of the truncated log."""
        self.high_watermark = min(self.high_watermark, offset)

    def _notify_appended(self) -> None:
        for watcher in self.watchers:
            watcher.on_appended()

    def _wake(self) -> None:
        for waiter in list(self.waiters):
            waiter.wake()
