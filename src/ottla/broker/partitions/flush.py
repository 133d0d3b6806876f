"""Group commit: one flush at a time, for all partitions appended to since the last one.

Records appended in one turn of the loop are flushed together; while the disk is busy, the next
group gathers. A finished flush advances the durable offsets, so waiting requests are answered. If
no request waits (acks=1, and no consumer at the end of the log), a group starts a few milliseconds
later, to keep the disk less busy.

A group of many logs is written to the flush journal of their log directory, which costs one fsync
for all (`FlushJournal`). Their own files are flushed in the background, as are checkpoints.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import Protocol

from ottla.base.clock import Clock
from ottla.base.ids import TopicId
from ottla.storage.disk.errors import DiskFull, StorageError
from ottla.storage.log.flush import FlushJob, LogTail
from ottla.storage.log.flush_journal import FILE_BYTES, FlushJournal
from ottla.storage.log.log import Log

_RETRY_S = 1.0
# How long a group gathers when no request waits for it.
_RELAXED_S = 0.005
# Threads that flush files at once: the disk serves them together.
_THREADS = 8
# The most logs of one group, which are answered together: each takes 8 µs on the loop. And the most
# that are flushed in their own files, which takes 40 µs on the loop.
_GROUP_MAX = 2_000
_JOBS_MAX = 500
# The most logs of one group in the background, because preparing them must not block the loop.
_ASIDE_MAX = 100


class Flushable(Protocol):
    """The part of a partition that the flusher uses."""

    log: Log
    topic_id: TopicId

    def on_flushed(self) -> None: ...

    def flush_soon(self) -> None: ...

    def on_flush_failed(self, error: StorageError) -> None: ...


class Worker(Protocol):
    """Runs blocking jobs outside the loop."""

    def start(self, job: Callable[[], None], *, aside: bool = False) -> None:
        """Run `job` after the earlier jobs. Jobs with `aside` have a thread of their own."""
        ...

    def run_all(self, jobs: Sequence[Callable[[], None]], *, aside: bool) -> None:
        """Run `jobs`, which raise nothing, from inside a job; return when all are done."""
        ...

    def close(self) -> None:
        """Return once the last job is done; no job may be started after that."""
        ...


class ThreadWorker:
    """Two threads, each with a pool of helper threads. All are created when first needed."""

    def __init__(self) -> None:
        self._lanes = (_Lane("ottla-flush"), _Lane("ottla-flush-aside"))

    def start(self, job: Callable[[], None], *, aside: bool = False) -> None:
        self._lanes[aside].start(job)

    def run_all(self, jobs: Sequence[Callable[[], None]], *, aside: bool) -> None:
        self._lanes[aside].run_all(jobs)

    def close(self) -> None:
        for lane in self._lanes:
            lane.close()


def _run_each(jobs: Iterable[Callable[[], None]]) -> None:
    for job in jobs:
        job()


class _Lane:
    """A thread that runs jobs one after the other."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._pool: ThreadPoolExecutor | None = None

    def run_all(self, jobs: Sequence[Callable[[], None]]) -> None:
        if len(jobs) <= 1:
            _run_each(jobs)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_THREADS, f"{self._name}-files")
        shares = [jobs[number::_THREADS] for number in range(min(_THREADS, len(jobs)))]
        for future in [self._pool.submit(_run_each, share) for share in shares]:
            future.result()

    def start(self, job: Callable[[], None]) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        self._jobs.put(job)

    def close(self) -> None:
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


@dataclass(slots=True)
class _Flush:
    """The flush of one log: a job for its own files, or its unflushed tail for a journal."""

    partition: Flushable
    log: Log
    job: FlushJob | None = None
    tail: LogTail | None = None
    error: StorageError | None = None

    def run(self) -> None:
        """Run the job. Errors are kept."""
        assert self.job is not None
        try:
            self.job.run()
        except StorageError as error:
            self.error = error


@dataclass(slots=True)
class _Group:
    """Flushes that run together. Once they are done, `waiters` are woken."""

    aside: bool
    jobs: list[_Flush] = field(default_factory=list)
    tails: dict[FlushJournal, list[_Flush]] = field(default_factory=dict)
    tail_bytes: int = 0
    began_s: float = 0.0
    waiters: list[asyncio.Future[None]] = field(default_factory=list)

    def run(self, worker: Worker | None) -> None:
        """Write the journals, then the logs' own files. Errors are kept in the flushes."""
        for journal, flushes in self.tails.items():
            found = [(one.partition.topic_id, one.tail) for one in flushes if one.tail is not None]
            try:
                errors = journal.write(found)
            except StorageError as error:
                errors = [error] * len(flushes)
            for one, failure in zip(flushes, errors, strict=True):
                one.error = failure
        self._sync_parents()
        runs = [one.run for one in self.jobs]
        if worker is None:
            _run_each(runs)
        else:
            worker.run_all(runs, aside=self.aside)

    def _sync_parents(self) -> None:
        """Flush the names of new folders, once for all in the same log directory."""
        new = [one.job for one in self.jobs if one.job is not None and one.job.sync_parent]
        for filesystem, parent in {(job.filesystem, job.parent) for job in new}:
            # If this fails, each job tries it again, and keeps the error.
            with contextlib.suppress(OSError):
                filesystem.fsync_directory(parent)
                for job in new:
                    job.parent_is_synced |= job.parent == parent

    @property
    def flushes(self) -> list[_Flush]:
        return [*self.jobs, *(one for flushes in self.tails.values() for one in flushes)]


class Flusher:
    """Flushes partitions in the background, or on the loop with `inline` (logs in memory).

    A group of `journal_from` logs or more is written to the flush journal; 0 turns that off.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        *,
        inline: bool = False,
        worker: Worker | None = None,
        journal_from: int = 0,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._inline = inline
        self._journal_from = journal_from
        self._dirty: dict[Flushable, None] = {}
        # The partitions to flush in the background; True if a checkpoint, from which recovery can
        # start, is to be written as well.
        self._aside_dirty: dict[Flushable, bool] = {}
        # The running group, and the one in the background.
        self._group: _Group | None = None
        self._aside: _Group | None = None
        # The timer for the next group; whether a request waits for it.
        self._start: asyncio.Handle | None = None
        self._urgent = False
        self._worker = worker or ThreadWorker()
        # Waiters for the next group, and for the next one in the background.
        self._waiters: list[asyncio.Future[None]] = []
        self._aside_waiters: list[asyncio.Future[None]] = []
        self._debts: dict[FlushJournal, _Debts] = {}
        # Partitions to flush by themselves, because a journal had no room for them.
        self._alone: set[Flushable] = set()
        # Partitions whose log may not be flushed now: see `hold`.
        self._held: set[Flushable] = set()
        self._closed = False
        # Groups since the start. Flush requests divided by groups give the group size.
        self.jobs_total = 0
        # The time of finished groups in milliseconds: in total, and of the longest.
        self.ms_total = self.ms_longest = 0.0

    # Hot: once per append.
    def mark_dirty(self, partition: Flushable) -> None:
        """Include the partition in the next group."""
        self._dirty[partition] = None
        if self._start is None and self._group is None:
            self._begin_soon()

    def hurry(self) -> None:
        """Flush at the end of this turn of the loop, or with the next group: a request waits."""
        if self._urgent or not self._dirty:
            return
        self._urgent = True
        if self._group is None:
            if self._start is not None:
                self._start.cancel()
            self._start = self._loop.call_soon(self._start_group)

    def mark_for_checkpoint(self, partition: Flushable) -> None:
        """Flush a partition with its indexes and a producer snapshot, in the background."""
        self._aside_dirty[partition] = True
        self._start_aside()

    def forget(self, partition: Flushable) -> None:
        """Forget a partition that was closed or moved to another directory."""
        self._dirty.pop(partition, None)
        self._aside_dirty.pop(partition, None)
        self._alone.discard(partition)
        self._start_aside()

    async def hold(self, partition: Flushable) -> None:
        """Begin no flush of the partition until `release`; return when running ones have ended.

        Journals keep their files meanwhile, because the log may be replaced.
        """
        self._held.add(partition)
        waits = []
        for group in (self._group, self._aside):
            if group is not None and any(one.partition is partition for one in group.flushes):
                waits.append(self._loop.create_future())
                group.waiters.append(waits[-1])
        for future in waits:
            await future

    def release(self, partition: Flushable) -> None:
        """Flush the partition again, which `hold` has held."""
        self._held.discard(partition)
        for debts in self._debts.values():
            if debts.journal.size >= FILE_BYTES:
                self._settle_debts(debts)
        partition.flush_soon()
        self.hurry()
        self._start_aside()

    @property
    def unfinished(self) -> list[Flushable]:
        """The partitions with records whose flush has not begun or not ended."""
        flushes = [] if self._group is None else self._group.flushes
        return [*self._dirty, *self._held, *(one.partition for one in flushes)]

    async def settle(self) -> None:
        """Wait until all partitions marked so far are flushed or have failed."""
        waits = []
        if self._dirty or self._group is not None:
            self.hurry()
            waits.append(self._loop.create_future())
            # If nothing is dirty, the running group has all partitions that were marked.
            waiters = self._waiters if self._dirty or self._group is None else self._group.waiters
            waiters.append(waits[-1])
        if self._aside_dirty:
            waits.append(self._loop.create_future())
            self._aside_waiters.append(waits[-1])
        elif self._aside is not None:
            waits.append(self._loop.create_future())
            self._aside.waiters.append(waits[-1])
        for future in waits:
            await future

    def close(self) -> None:
        """Stop after the running jobs are done."""
        self._closed = True
        if self._start is not None:
            self._start.cancel()
        self._worker.close()

    def _begin_soon(self) -> None:
        if self._urgent or self._inline:
            self._start = self._loop.call_soon(self._start_group)
        else:
            self._start = self._loop.call_later(_RELAXED_S, self._start_group)

    def _start_group(self) -> None:
        dirty, self._dirty = self._dirty, {}
        was_urgent, self._urgent = self._urgent, False
        self._start = None
        group = _Group(aside=False)
        busy = {one.partition for one in self._aside.jobs} if self._aside is not None else ()
        is_large = len(dirty) >= self._journal_from
        for number, partition in enumerate(dirty):
            if partition in self._held:
                continue  # `release` marks it again.
            if number >= _GROUP_MAX:
                self._dirty[partition] = None
                continue
            # While a log's own job runs in the background, only the journal can take its tail.
            is_busy = partition in busy
            if (is_large or is_busy) and self._add_tail(group, partition):
                continue
            if is_busy or len(group.jobs) >= _JOBS_MAX:
                self._dirty[partition] = None
            else:
                group.jobs.append(_direct(partition))
        if self._dirty:
            # The end of this group, or of the one in the background, starts the next group.
            self._urgent = was_urgent
        else:
            group.waiters, self._waiters = self._waiters, []
        if not group.jobs and not group.tails:
            _wake(group.waiters)
            return
        self.jobs_total += 1
        self._group = group
        self._run(group)

    def _add_tail(self, group: _Group, partition: Flushable) -> bool:
        """Add the partition's unflushed end to the group, if the journal can take it."""
        log = partition.log
        journal = log.journal
        if self._journal_from == 0 or journal is None or not journal.has_room:
            return False
        tail = None if partition in self._alone else log.flush_state.tail(log)
        if tail is None:
            return False
        tails = group.tails.setdefault(journal, [])
        if journal.size + group.tail_bytes + tail.size > FILE_BYTES and tails:
            return False
        group.tail_bytes += tail.size
        tails.append(_Flush(partition, log, tail=tail))
        return True

    def _start_aside(self) -> None:
        """Start the next group in the background, unless one runs."""
        if self._aside is not None:
            return
        if not self._aside_dirty:
            waiters, self._aside_waiters = self._aside_waiters, []
            _wake(waiters)
            return
        busy = {one.partition for one in self._group.jobs} if self._group is not None else ()
        ready = [one for one in self._aside_dirty if one not in busy and one not in self._held]
        chosen = ready[:_ASIDE_MAX]
        if not chosen:
            return
        group = _Group(aside=True)
        for partition in chosen:
            checkpoint = self._aside_dirty.pop(partition)
            group.jobs.append(_direct(partition, checkpoint=checkpoint))
        if not self._aside_dirty:
            group.waiters, self._aside_waiters = self._aside_waiters, []
        self.jobs_total += 1
        self._aside = group
        self._run(group)

    def _run(self, group: _Group) -> None:
        group.began_s = self._loop.time()
        if self._inline:
            group.run(None)
            self._finish(group)
            return
        self._worker.start(partial(self._work, group), aside=group.aside)

    def _work(self, group: _Group) -> None:
        group.run(self._worker)
        # A loop that was closed without stopping the broker accepts no callbacks.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._finish, group)

    def _finish(self, group: _Group) -> None:
        now_ms = self._clock.now_ms()
        took_ms = (self._loop.time() - group.began_s) * 1000
        self.ms_total += took_ms
        self.ms_longest = max(self.ms_longest, took_ms)
        if group.aside:
            self._aside = None
        else:
            self._group = None
        for one in group.flushes:
            self._finish_one(one, now_ms)
        if self._closed:
            _wake([*group.waiters, *self._waiters, *self._aside_waiters])
            return
        for journal, flushes in group.tails.items():
            self._note_debts(journal, flushes)
        if group.aside:
            for debts in self._debts.values():
                self._settle_debts(debts)
        if self._group is None and self._start is None:
            if self._dirty:
                self._begin_soon()
            else:
                waiters, self._waiters = self._waiters, []
                _wake(waiters)
        self._start_aside()
        _wake(group.waiters)

    def _finish_one(self, one: _Flush, now_ms: int) -> None:
        partition, log, error = one.partition, one.log, one.error
        if partition.log is not log:
            return  # The partition was moved meanwhile, and its new log was flushed then.
        if isinstance(error, DiskFull) and one.tail is not None:
            # There is no room in the journal; the log's own file has the records already.
            self._alone.add(partition)
            self.mark_dirty(partition)
            return
        if error is not None:
            partition.on_flush_failed(error)
            if not error.stops_log:  # The disk is full: there may be room later.
                self._loop.call_later(_RETRY_S, partition.flush_soon)
            return
        if one.job is not None:
            log.on_flushed(one.job, now_ms)
            self._alone.discard(partition)
        elif one.tail is not None:
            log.flush_state.on_journaled(one.tail, log.truncations)
        partition.on_flushed()

    def _note_debts(self, journal: FlushJournal, flushes: Sequence[_Flush]) -> None:
        debts = self._debts.setdefault(journal, _Debts(journal))
        for one in flushes:
            if one.error is None and one.tail is not None:
                debts.present[one.log] = (one.partition, one.tail.end_offset)
        if journal.size >= FILE_BYTES:
            self._settle_debts(debts)

    def _settle_debts(self, debts: "_Debts") -> None:
        """Flush the logs in the old journal file, then remove the file.

        If the current file is full, it becomes the old one, and a new file is begun.
        """
        if self._held:
            return
        had_old = bool(debts.old)
        debts.old = {
            log: (partition, end)
            for log, (partition, end) in debts.old.items()
            if partition.log is log and _is_owed(log, end)
        }
        if not debts.old:
            if had_old:
                self._worker.start(debts.journal.removal_of_rolled(), aside=True)
            if debts.journal.size >= FILE_BYTES:
                debts.journal.roll()
                debts.old, debts.present = debts.present, {}
        for log, (partition, _) in debts.old.items():
            if not log.offline:
                self._aside_dirty.setdefault(partition, False)


def _is_owed(log: Log, end: int) -> bool:
    """Whether the log has records below `end` that only a journal makes durable.

    A log that failed may need the journal at the next start, unless it was deleted.
    """
    if log.offline:
        return not log.is_deleted
    return log.flush_state.recovery_point < min(end, log.log_end_offset)


def _wake(waiters: Iterable[asyncio.Future[None]]) -> None:
    for future in waiters:
        if not future.done():
            future.set_result(None)


def _direct(partition: Flushable, *, checkpoint: bool = False) -> _Flush:
    log = partition.log
    return _Flush(partition, log, job=log.prepare_flush(checkpoint=checkpoint))


@dataclass(slots=True)
class _Debts:
    """The logs with records that only a journal makes durable, and the end of these records.

    `present` has the logs in the journal's current file, `old` those in the file before it.
    """

    journal: FlushJournal
    present: dict[Log, tuple[Flushable, int]] = field(default_factory=dict)
    old: dict[Log, tuple[Flushable, int]] = field(default_factory=dict)


# A log is flushed with a checkpoint after this many bytes, or after a minute if recovery would have
# to read more than a few batches. A checkpoint costs five fsyncs, and thousands of logs may get a
# record each minute.
_BYTES = 16 << 20
_MS = 60_000
_BYTES_MIN = 64 << 10


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
        """Whether the log has grown by `_BYTES` since its checkpoint, after `_MS` by `_BYTES_MIN`.

        A log that has not grown is never due.
        """
        if log.log_end_offset == self._end:
            return False
        grown_bytes = log.size_bytes - self._size_bytes
        return grown_bytes >= (_BYTES if now_ms - self._when_ms < _MS else _BYTES_MIN)

    def on_copied(self, log: Log) -> None:
        """Note that the partition now uses `log`, a copy with the same records."""
        self._size_bytes = log.size_bytes
