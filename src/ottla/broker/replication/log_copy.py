"""Copies a log to another log directory, using the follower core.

The copy follows the log in use as a follower follows its leader, but on the same broker. So it
handles changes of that log meanwhile: deleted records at its start, a truncated end.
"""

import asyncio
from collections.abc import Callable
from typing import assert_never

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode
from ottla.base.ids import BrokerId
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.removals import Removals
from ottla.metadata.decisions import Decision
from ottla.metadata.image import PartitionImage
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
from ottla.storage.directory.log_directory import LogDirectory
from ottla.storage.disk.errors import StorageError, storage_error
from ottla.storage.log.log import Log, Slice
from ottla.storage.log.truncation import begin_within, restart_at, truncate_to
from ottla.storage.segment.segments import Deletion

# Broker ids that the follower core requires: one for the copy, one for its source.
_COPY, _LOCAL = BrokerId(-3), BrokerId(0)
_LOCAL_IMAGE = PartitionImage(leader=_LOCAL, leader_epoch=0, replicas=(_LOCAL,), isr=(_LOCAL,))
_STEP_BYTES = 1 << 20


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

    @property
    def lag(self) -> int:
        """The number of offsets by which the copy lags."""
        return max(0, self.partition.log_end_offset - self.log.log_end_offset)

    async def step(self) -> int:
        """Copy and flush up to 1 MiB, with disk access in a thread; return the number of bytes.

        Raises OttlaError.
        """
        found = self._next()
        if found is None:
            return 0
        loop = asyncio.get_running_loop()
        in_memory = self.log.filesystem.in_memory
        try:
            if in_memory:
                records = found.file.pread(found.size, found.position)
            else:
                records = await loop.run_in_executor(
                    None, found.file.pread, found.size, found.position
                )
        except OSError as error:
            self._on_source_error(storage_error(error, found.file.path, "read"))
            return 0
        self._take(records)
        job = self.log.prepare_flush()
        if in_memory:
            job.run()
        else:
            await loop.run_in_executor(None, job.run)
        self.log.on_flushed(job, self._clock.now_ms())
        return len(records)

    def finish(self) -> bool:
        """Copy the rest without yielding; return whether it is complete. Raises OttlaError."""
        found = self._next()
        if found is not None:
            self._take(found.file.pread(found.size, found.position))
        return self._next() is None and self.lag == 0

    def _next(self) -> Slice | None:
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
            return source.read(follower.fetch_offset, _STEP_BYTES, max_offset=end)
        except StorageError as error:
            self._on_source_error(error)
            return None

    def _take(self, records: bytes) -> None:
        """Append the records read, unless the source was truncated meanwhile."""
        if compare(self.partition.log, self.log.log_end_offset, self.log.last_epoch) is None:
            self._carry_out(self._answer(empty=not records), records)

    def _answer(self, *, empty: bool) -> tuple[FollowerEffect, ...]:
        partition = self.partition
        return self._follower.on_records(
            self._follower.nonce,
            0,
            partition.high_watermark,
            partition.log_start_offset,
            empty=empty,
        )

    def _carry_out(self, effects: tuple[FollowerEffect, ...], records: bytes) -> None:
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
