"""Group commit: one fsync job at a time, for all partitions appended to since the last one.

Records appended in one turn of the loop are flushed together; while the disk is busy, the next
group gathers. A finished job advances the recovery points, so waiting requests are answered. If no
request waits (acks=1, and no consumer at the end of the log), a job starts a few milliseconds
later, to keep the disk less busy.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Protocol

from ottla.base.clock import Clock
from ottla.storage.disk.errors import StorageError
from ottla.storage.log.flush import FlushJob
from ottla.storage.log.log import Log

_RETRY_S = 1.0
# How long a group gathers when no request waits for it.
_RELAXED_S = 0.005


class Flushable(Protocol):
    """The part of a partition that the flusher uses."""

    log: Log

    def on_flushed(self) -> None: ...

    def flush_soon(self) -> None: ...

    def on_flush_failed(self, error: StorageError) -> None: ...


class Worker(Protocol):
    """Runs blocking jobs outside the loop, one at a time."""

    def start(self, job: Callable[[], None]) -> None:
        """Run `job` as soon as the earlier ones are done."""
        ...

    def close(self) -> None:
        """Return once the last job is done; no job may be started after that."""
        ...


class ThreadWorker:
    """A thread, created for its first job."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def start(self, job: Callable[[], None]) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="ottla-flush", daemon=True)
            self._thread.start()
        self._jobs.put(job)

    def close(self) -> None:
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


Batch = list[tuple[Flushable, Log, FlushJob]]
Outcome = list[tuple[Flushable, Log, FlushJob, StorageError | None]]


class Flusher:
    """Flushes partitions in the background, or on the loop with `inline` (logs in memory)."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        *,
        inline: bool = False,
        worker: Worker | None = None,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._inline = inline
        self._dirty: dict[Flushable, None] = {}
        # The dirty partitions to flush with a checkpoint, from which a recovery can start.
        self._checkpoints: set[Flushable] = set()
        # Whether a job runs; the timer for the next job; whether a request waits for it.
        self._running = False
        self._start: asyncio.Handle | None = None
        self._urgent = False
        self._worker = worker or ThreadWorker()
        # Waiters for the running job, and for the one after it.
        self._settled: list[asyncio.Future[None]] = []
        self._next_settled: list[asyncio.Future[None]] = []
        # Flush jobs since the start. Flush requests divided by jobs give the group size.
        self.jobs_total = 0

    # Hot: once per append.
    def mark_dirty(self, partition: Flushable) -> None:
        """Include the partition in the next job."""
        self._dirty[partition] = None
        if self._start is None and not self._running:
            self._begin_soon()

    def hurry(self) -> None:
        """Flush at the end of this turn, or with the next job, because a request waits."""
        if self._urgent or not self._dirty:
            return
        self._urgent = True
        if not self._running:
            if self._start is not None:
                self._start.cancel()
            self._start = self._loop.call_soon(self._start_job)

    def mark_for_checkpoint(self, partition: Flushable) -> None:
        """Flush a partition with its indexes and a producer snapshot."""
        self._checkpoints.add(partition)
        self.mark_dirty(partition)

    def forget(self, partition: Flushable) -> None:
        """Forget a partition that was closed or moved to another directory."""
        self._dirty.pop(partition, None)
        self._checkpoints.discard(partition)

    async def settle(self) -> None:
        """Wait until all partitions marked so far are flushed or have failed."""
        if self._dirty or self._running:
            self.hurry()
            settled = self._loop.create_future()
            self._next_settled.append(settled)
            await settled

    def close(self) -> None:
        """Stop after the running job is done."""
        if self._start is not None:
            self._start.cancel()
        self._worker.close()

    def _begin_soon(self) -> None:
        if self._urgent or self._inline:
            self._start = self._loop.call_soon(self._start_job)
        else:
            self._start = self._loop.call_later(_RELAXED_S, self._start_job)

    def _start_job(self) -> None:
        batch = [
            (
                partition,
                partition.log,
                partition.log.prepare_flush(checkpoint=partition in self._checkpoints),
            )
            for partition in self._dirty
        ]
        self._dirty.clear()
        self._checkpoints.clear()
        self._start = None
        self._urgent = False
        self._running = True
        self.jobs_total += 1
        self._settled, self._next_settled = self._next_settled, []
        if self._inline:
            self._finish(_run(batch))
            return
        self._worker.start(partial(self._work, batch))

    def _work(self, batch: Batch) -> None:
        outcome = _run(batch)
        # A loop that was closed without stopping the broker accepts no callbacks.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._finish, outcome)

    def _finish(self, outcome: Outcome) -> None:
        now_ms = self._clock.now_ms()
        for partition, log, job, error in outcome:
            if partition.log is not log:
                continue  # The partition was moved meanwhile, and its new log was flushed then.
            if error is None:
                log.on_flushed(job, now_ms)
                partition.on_flushed()
            else:
                partition.on_flush_failed(error)
                if not error.stops_log:  # The disk is full: there may be room later.
                    self._loop.call_later(_RETRY_S, partition.flush_soon)
        self._running = False
        settled, self._settled = self._settled, []
        if not self._dirty:
            settled += self._next_settled
            self._next_settled = []
        else:
            self._begin_soon()
        for future in settled:
            if not future.done():
                future.set_result(None)


def _run(batch: Batch) -> Outcome:
    outcome: Outcome = []
    for partition, log, job in batch:
        try:
            job.run()
        except StorageError as error:
            outcome.append((partition, log, job, error))
        else:
            outcome.append((partition, log, job, None))
    return outcome


# After this many bytes or milliseconds, a log is flushed with a checkpoint.
_BYTES = 16 << 20
_MS = 60_000


class CheckpointPace:
    """The position, size and time of a log's last checkpoint."""

    __slots__ = ("_end", "_size_bytes", "_when_ms")

    def __init__(self, log: Log, now_ms: int) -> None:
        self.note(log, now_ms)

    def note(self, log: Log, now_ms: int) -> None:
        """Note that the log has just been checkpointed."""
        self._end = log.log_end_offset
        self._size_bytes = log.size_bytes
        self._when_ms = now_ms

    def is_due(self, log: Log, now_ms: int) -> bool:
        """Whether the log has grown by `_BYTES` since its checkpoint, or at all after `_MS`."""
        if log.log_end_offset == self._end:
            return False
        grown_bytes = log.size_bytes - self._size_bytes
        return grown_bytes >= _BYTES or now_ms - self._when_ms >= _MS

    def on_copied(self, log: Log) -> None:
        """Note that the partition now uses `log`, a copy with the same records."""
        self._size_bytes = log.size_bytes
