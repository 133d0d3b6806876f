"""Copies a log to another log directory, using the follower core.

The copy follows the log in use as a follower follows its leader, but on the same broker. So it
handles changes of that log meanwhile: deleted records at its start, a truncated end.
"""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from struct import Struct
from typing import TypeVar, assert_never

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode
from ottla.base.ids import BrokerId
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.removals import Removals
from ottla.metadata.decisions import Decision
from ottla.metadata.image import PartitionImage
from ottla.record.header import LENGTH_OVERHEAD
from ottla.replica.compare import compare
from ottla.replica.effects import (
    AdvanceHighWatermark,
    AdvanceLogStart,
    Append,
    Diverging,
    FollowerEffect,
    RestartAt,
    TruncateTo,
)
from ottla.replica.follower import NO_FETCH, Follower
from ottla.replica.registration import Registration
from ottla.storage.directory.future_logs import prepare_values
from ottla.storage.directory.log_directory import LogDirectory
from ottla.storage.disk.errors import StorageError, storage_error
from ottla.storage.disk.filesystem import Buffer
from ottla.storage.log.log import Log, Slice
from ottla.storage.log.relocation import checkpoint_as
from ottla.storage.log.truncation import begin_within, restart_at, truncate_to
from ottla.storage.segment.segments import Deletion

# Broker ids that the follower core requires: one for the copy, one for its source.
_COPY, _LOCAL = BrokerId(-3), BrokerId(0)
_LOCAL_IMAGE = PartitionImage(leader=_LOCAL, leader_epoch=0, replicas=(_LOCAL,), isr=(_LOCAL,))
_STEP_BYTES = 1 << 20
# Appended in one turn of the loop: small batches take 10 µs each.
_PORTION_BATCHES = 200
# How long the last records may hold the loop, and how many of them are read at a time.
_CATCH_UP_MS = 5
_CATCH_UP_BYTES = 32 << 10
_LENGTH = Struct(">i")
_LENGTH_AT = 8

Result = TypeVar("Result")


class LogCopy:
    """The copy of `partition`'s log in `target`; `log` is the copy's own log."""

    def __init__(
        self,
        partition: Partition,
        log: Log,
        target: LogDirectory,
        clock: Clock,
        removals: Removals,
        on_source_error: Callable[[StorageError], None],
    ) -> None:
        """`on_source_error` takes the source log offline when it cannot be read."""
        self.partition = partition
        self.log = log
        self.target = target
        self._clock = clock
        self._removals = removals
        self._on_source_error = on_source_error
        self._follower = Follower(
            partition.topic_partition,
            Registration(_COPY, 0, 0),
            _LOCAL_IMAGE,
            log,
            high_watermark=log.log_start_offset,
            retry_ms=0,
        )
        # The state of the log and its copy when `prepare` wrote the copy's files; None before.
        self._prepared: tuple[int, int, int] | None = None

    @property
    def lag(self) -> int:
        """The number of offsets by which the copy lags."""
        return max(0, self.partition.log_end_offset - self.log.log_end_offset)

    async def step(self) -> int:
        """Copy and flush up to 1 MiB, with disk access in a thread; return the number of bytes.

        Raises OttlaError.
        """
        found = self._next(_STEP_BYTES)
        if found is None:
            return 0
        try:
            read = partial(found.file.pread, found.size, found.position)
            records = await in_thread(self.log, read)
        except OSError as error:
            self._on_source_error(storage_error(error, found.file.path, "read"))
            return 0
        for portion in _portions(records):
            if not self._take(portion):
                break
            await asyncio.sleep(0)
        job = self.log.prepare_flush()
        await in_thread(self.log, job.run)
        self.log.on_flushed(job, self._clock.now_ms())
        return len(records)

    async def prepare(self) -> bool:
        """Write and flush all that the copy needs to become the log; the log stays in use.

        Returns False if the copy lags too far for that. Raises OttlaError.
        """
        log, source = self.log, self.partition.log
        if source.replacement is not None or not self._catch_up():
            return False
        self._prepared = self._state()
        log_start = max(log.log_start_offset, source.log_start_offset)
        job = checkpoint_as(log, source)
        await in_thread(log, job.run)
        log.on_flushed(job, self._clock.now_ms())
        await in_thread(log, prepare_values(self.target, log, log_start).run)
        return True

    def is_complete(self) -> bool:
        """Copy the rest without yielding; return whether the copy may become the log at once.

        All records that are flushed in the log are flushed in the copy then, and all that `prepare`
        wrote is up to date. Raises OttlaError.
        """
        source = self.partition.log
        return (
            self._catch_up()
            and self.log.flush_state.durable_offset >= source.flush_state.durable_offset
            and self._state() == self._prepared
            and source.replacement is None
        )

    def _state(self) -> tuple[int, int, int]:
        source = self.partition.log
        return source.log_start_offset, source.ledger.history.changes, self.log.truncations

    def _catch_up(self) -> bool:
        """Copy the rest without yielding, if that is fast; return whether the copy has all."""
        begun_ms = self._clock.monotonic_ms()
        while (found := self._next(_CATCH_UP_BYTES)) is not None:
            if not found.size or self._clock.monotonic_ms() - begun_ms >= _CATCH_UP_MS:
                return False
            try:
                records = found.file.pread(found.size, found.position)
            except OSError as error:
                self._on_source_error(storage_error(error, found.file.path, "read"))
                return False
            self._take(records)
        return self.lag == 0

    def _next(self, max_bytes: int) -> Slice | None:
        """Return the next records to copy; None if the copy has all of them.

        If the logs diverge, the copy is truncated first.
        """
        follower, source = self._follower, self.partition.log
        self.log.ledger.history.compacted_to(source.ledger.history.compacted_below)
        while True:
            now_ms = self._clock.monotonic_ms()
            follower.nonce = NO_FETCH
            follower.begin_fetch(self.log.log_end_offset, now_ms=now_ms)
            verdict = compare(source, follower.fetch_offset, follower.last_fetched_epoch)
            if verdict is None:
                break
            (answer,) = verdict
            if isinstance(answer, Diverging):
                effects = follower.on_diverging(
                    follower.nonce, 0, answer.epoch, answer.end_offset, now_ms=now_ms
                )
            else:
                start = source.log_start_offset
                code = ErrorCode.OFFSET_OUT_OF_RANGE
                effects = follower.on_error(follower.nonce, 0, code, start, now_ms=now_ms)
            assert effects, "a log knows where another one diverges from it"
            self._carry_out(effects, b"")
        end = source.log_end_offset
        if follower.fetch_offset == end:
            self._carry_out(self._answer(empty=True), b"")
            return None
        try:
            return source.read(follower.fetch_offset, max_bytes, max_offset=end)
        except StorageError as error:
            self._on_source_error(error)
            return None

    def _take(self, records: Buffer) -> bool:
        """Append the records read, unless the source was truncated meanwhile; return whether."""
        log, follower = self.log, self._follower
        if compare(self.partition.log, log.log_end_offset, log.last_epoch) is not None:
            return False
        follower.nonce = NO_FETCH
        follower.begin_fetch(log.log_end_offset, now_ms=self._clock.monotonic_ms())
        self._carry_out(self._answer(empty=False), records)
        return True

    def _answer(self, *, empty: bool) -> tuple[FollowerEffect, ...]:
        partition = self.partition
        return self._follower.on_records(
            self._follower.nonce,
            0,
            partition.high_watermark,
            partition.log_start_offset,
            empty=empty,
        )

    def _carry_out(self, effects: tuple[FollowerEffect, ...], records: Buffer) -> None:
        log, now_ms = self.log, self._clock.now_ms()
        for effect in effects:
            match effect:
                case Append():
                    self._discard(begin_within(log, records, now_ms))
                    log.append_as_follower(records, now_ms)
                    self._carry_out(self._follower.on_appended(), records)
                case AdvanceLogStart():
                    log.advance_log_start(effect.offset)
                case TruncateTo():
                    log.flush_state.lower_recovery_point(effect.end_offset)
                    self._discard(truncate_to(log, effect.end_offset, now_ms))
                case RestartAt():
                    self._discard(restart_at(log, effect.offset, now_ms))
                case AdvanceHighWatermark() | Decision():
                    pass  # The copy is neither read nor counted as a replica.
                case _:
                    assert_never(effect)

    def _discard(self, deletions: list[Deletion]) -> None:
        for deletion in deletions:
            self._removals.remove_later(deletion)


async def in_thread(log: Log, job: Callable[[], Result]) -> Result:
    """Run a job on a log's files in a thread; at once if they are in memory."""
    if log.filesystem.in_memory:
        return job()
    return await asyncio.get_running_loop().run_in_executor(None, job)


def _portions(records: bytes) -> Iterator[memoryview]:
    """Divide whole batches into portions of a few batches."""
    view, start, position, count = memoryview(records), 0, 0, 0
    while position + LENGTH_OVERHEAD <= len(view):
        position += _LENGTH.unpack_from(view, position + _LENGTH_AT)[0] + LENGTH_OVERHEAD
        count += 1
        if count % _PORTION_BATCHES == 0:
            yield view[start:position]
            start = position
    if start < len(view):
        yield view[start:]
