"""A broker's log cleaner: repeatedly cleans the compacted log that is dirtiest.

A child process reads and writes the segments (`worker`), and threads wait for the disk. Only fast
work runs on the loop: the choice of a log, and the swap of its segments. Every broker cleans its
own replicas.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.base.settings import BrokerSettings
from ottla.broker.compaction.worker import ChildWorker, CleaningStopped, clean_here
from ottla.broker.partitions.flush import Flusher
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.partitions.removals import Removals, write_ledger
from ottla.broker.runtime.part import BrokerPart
from ottla.broker.runtime.runtime import Runtime
from ottla.record.key_map import ENTRY_BYTES
from ottla.storage.cleaner.job import CleaningOutcome
from ottla.storage.cleaner.plan import Dirt, LogCleaning, look
from ottla.storage.cleaner.swap import Swap
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.disk.errors import StorageError, storage_error
from ottla.storage.files.names import CLEANED_SUFFIX

_FIRST_PAUSE_MS = 15_000
_LONGEST_PAUSE_MS = 3_600_000


@dataclass(slots=True)
class CleaningStatus:
    """The state of one log's cleaning. Times are in milliseconds since 1970, -1 for never."""

    passes: int = 0
    last: CleaningOutcome | None = None
    last_at_ms: int = -1
    is_running: bool = False
    # Clean up to this offset for a request, regardless of the dirty ratio; -1 for no request.
    wanted_end: int = -1
    # Why the last attempt failed (empty after a success), since when, and when to retry.
    failure: str = ""
    failed_since_ms: int = -1
    attempts: int = 0
    retry_at_ms: int = -1
    pause_ms: int = _FIRST_PAUSE_MS

    def note_success(self, outcome: CleaningOutcome, now_ms: int) -> None:
        """Note a finished cleaning."""
        self.passes += 1
        self.last, self.last_at_ms = outcome, now_ms
        self.failure, self.failed_since_ms, self.attempts = "", -1, 0
        self.retry_at_ms, self.pause_ms = -1, _FIRST_PAUSE_MS
        if outcome.end >= self.wanted_end:
            self.wanted_end = -1

    def note_failure(self, why: str, now_ms: int) -> None:
        """Note a failed attempt, and double the pause before the next one."""
        self.failure = why
        self.attempts += 1
        if self.failed_since_ms < 0:
            self.failed_since_ms = now_ms
        self.retry_at_ms = now_ms + self.pause_ms
        self.pause_ms = min(self.pause_ms * 2, _LONGEST_PAUSE_MS)
        self.wanted_end = -1


@dataclass(frozen=True, slots=True)
class CompactionPartStatus:
    """The state of a broker's cleaner.

    `logs` counts the compacted logs, `running` the logs being cleaned, `due` the logs dirty enough
    to be cleaned, with `due_bytes` dirty bytes. `passes` and `failures` count cleanings since the
    broker started. `last` is the last log cleaned, its outcome and its end time. `failed` has the
    logs whose last attempt failed.
    """

    threads: int
    logs: int
    running: int
    due: int
    due_bytes: int
    passes: int
    failures: int
    last: tuple[TopicPartition, CleaningOutcome, int] | None
    failed: tuple[tuple[TopicPartition, CleaningStatus], ...]


_log = logging.getLogger(__name__)

# The pause between checks if a request waits for a log to be cleaned.
_WANTED_PAUSE_S = 0.05
_LONGEST_SLEEP_S = 60.0


class Cleaner(BrokerPart):
    """Cleans one broker's compacted logs, `log.cleaner.threads` at a time."""

    def __init__(
        self,
        settings: BrokerSettings,
        runtime: Runtime,
        partitions: Partitions,
        directories: LogDirectories,
        flusher: Flusher,
        removals: Removals,
    ) -> None:
        self._settings = settings
        self._runtime = runtime
        self._partitions = partitions
        self._directories = directories
        self._flusher = flusher
        self._removals = removals
        self._statuses: dict[Partition, CleaningStatus] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._workers: set[ChildWorker] = set()
        self._wanted = asyncio.Event()
        self._passes = self._failures = 0
        self._last: tuple[TopicPartition, CleaningOutcome, int] | None = None
        self._threads: ThreadPoolExecutor | None = None

    @property
    def threads(self) -> int:
        """The number of logs that may be cleaned at a time."""
        settings = self._settings
        enabled = settings.flag("log.cleaner.enable")
        return settings.integer("log.cleaner.threads") if enabled else 0

    def begin(self) -> None:
        """Start cleaning dirty logs in the background."""
        for _ in range(self.threads):
            self._tasks.append(self._runtime.loop.create_task(self._run()))

    async def stop(self) -> None:
        """Stop running jobs, and drop cleaned segments that are not in use yet."""
        for worker in self._workers:
            worker.kill()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._threads is not None:
            self._threads.shutdown(wait=True)

    # -- status

    def status_of(self, partition: Partition) -> CleaningStatus:
        """Return the state of a partition's cleaning."""
        return self._statuses.setdefault(partition, CleaningStatus())

    def dirt(self, partition: Partition) -> Dirt:
        """Return the current dirty part of a partition's log. Raises StorageError."""
        log = partition.log
        home = self._directories.home(partition.topic_partition)
        cleaned = None if home is None else home.checkpoints.cleaned.get(partition.topic_partition)
        limit = min(partition.high_watermark, partition.last_stable_offset)
        try:
            return look(log, cleaned, limit, self._runtime.clock.now_ms())
        except OSError as error:
            raise storage_error(error, log.folder, "look for records to compact") from error

    def status(self) -> CompactionPartStatus:
        """Return the state of the cleaner; unreadable logs are not counted as due."""
        logs = running = due = due_bytes = 0
        failed: list[tuple[TopicPartition, CleaningStatus]] = []
        for partition in self._partitions:
            if not partition.config.is_compacted or partition.failure is not None:
                continue
            logs += 1
            status = self.status_of(partition)
            running += status.is_running
            if status.failure:
                failed.append((partition.topic_partition, status))
            with contextlib.suppress(StorageError):
                dirt = self.dirt(partition)
                if dirt.is_due(partition.config.min_cleanable_dirty_ratio):
                    due += 1
                    due_bytes += dirt.dirty_bytes
        return CompactionPartStatus(
            self.threads,
            logs,
            running,
            due,
            due_bytes,
            self._passes,
            self._failures,
            self._last,
            tuple(failed),
        )

    # -- requests

    def clean_now(self, partition: Partition) -> int:
        """Request a cleaning up to the current log end offset, which is returned.

        The dirty ratio is ignored. Raises StorageError.
        """
        self._roll(partition)
        status = self.status_of(partition)
        status.wanted_end = partition.log_end_offset
        status.retry_at_ms = -1
        self._wanted.set()
        return status.wanted_end

    async def estimate(self, partition: Partition) -> CleaningOutcome | None:
        """Return the outcome that a cleaning would have now; None if the log is clean.

        Raises OttlaError.
        """
        dirt = self.dirt(partition)
        if not dirt.dirty_bytes:
            return None
        return await self._work(LogCleaning(partition.log, dirt.end), dirt, dry_run=True)

    # -- the work

    async def _run(self) -> None:
        while True:
            try:
                chosen = self._choose()
                if chosen is not None:
                    await self._clean(*chosen)
                    await asyncio.sleep(0)
                    continue
            except Exception:  # noqa: BLE001  # The supervisor of this task.
                _log.exception("the cleaner failed unexpectedly")
            await self._rest()

    async def _rest(self) -> None:
        backoff_s = self._settings.integer("log.cleaner.backoff.ms") / 1000
        if any(status.wanted_end >= 0 for status in self._statuses.values()):
            backoff_s = min(backoff_s, _WANTED_PAUSE_S)
        self._wanted.clear()
        with contextlib.suppress(TimeoutError):
            rest_s = min(max(backoff_s, 0.01), _LONGEST_SLEEP_S)
            await asyncio.wait_for(self._wanted.wait(), rest_s)

    def _choose(self) -> tuple[Partition, Dirt] | None:
        """Choose a requested or overdue log, or else the dirtiest one that is due (P36)."""
        now_ms = self._runtime.clock.now_ms()
        best: tuple[bool, float] | None = None
        chosen = None
        partitions = dict.fromkeys(self._partitions)
        self._statuses = {p: s for p, s in self._statuses.items() if p in partitions}
        for partition in partitions:
            if not partition.config.is_compacted or partition.failure is not None:
                continue
            status = self.status_of(partition)
            if status.is_running or now_ms < status.retry_at_ms:
                continue
            try:
                self._roll_overdue(partition, now_ms)
                dirt = self.dirt(partition)
            except StorageError as error:
                self._partitions.on_storage_error(partition, error)
                continue
            wanted = self._is_wanted(status, dirt)
            if not wanted and not dirt.is_due(partition.config.min_cleanable_dirty_ratio):
                continue
            rank = (wanted or dirt.overdue, dirt.ratio)
            if best is None or rank > best:
                best, chosen = rank, (partition, dirt)
        return chosen

    @staticmethod
    def _is_wanted(status: CleaningStatus, dirt: Dirt) -> bool:
        """Whether a request waits for this log, and the log can be cleaned now."""
        if status.wanted_end < 0:
            return False
        is_far_enough = dirt.end >= status.wanted_end or dirt.waits_for_age
        if is_far_enough and not dirt.dirty_bytes:
            status.wanted_end = -1
        return is_far_enough and dirt.dirty_bytes > 0

    def _roll_overdue(self, partition: Partition, now_ms: int) -> None:
        """Roll the active segment if its oldest record exceeds max.compaction.lag.ms."""
        log, lag_ms = partition.log, partition.config.max_compaction_lag_ms
        active = log.segments.active
        if active.size and 0 <= active.oldest_timestamp() < now_ms - lag_ms:
            self._roll(partition)

    def _roll(self, partition: Partition) -> None:
        log = partition.log
        log.roll(self._runtime.clock.now_ms())
        if log.flush_state.rolled:
            self._flusher.mark_dirty(partition)

    async def _clean(self, partition: Partition, dirt: Dirt) -> None:
        status, clock = self.status_of(partition), self._runtime.clock
        status.is_running = True
        log = partition.log
        cleaning = LogCleaning(log, dirt.end)
        try:
            outcome = await self._work(cleaning, dirt)
            done = partition.log is log and await self._put_in_place(cleaning, outcome)
            if not done:
                _log.info("%s: truncated while it was compacted; again later", log.topic_partition)
                return
            await self._note_cleaned(partition, outcome)
            status.note_success(outcome, clock.now_ms())
            self._passes += 1
            self._last = log.topic_partition, outcome, clock.now_ms()
            _log_outcome(partition, outcome)
        except CleaningStopped:
            return
        except OttlaError as error:
            await self._in_thread(partial(_remove_unfinished, cleaning))
            status.note_failure(error.message, clock.now_ms())
            self._failures += 1
            _log.error(
                "%s is not compacted: %s; attempt %d, the next in %d s",
                log.topic_partition,
                error.message,
                status.attempts,
                (status.retry_at_ms - clock.now_ms()) // 1000,
            )
            # An offline log was deleted or has failed, and may have been created again.
            is_ours = partition.log is log and not log.offline
            if is_ours and isinstance(error, StorageError) and error.stops_log:
                self._partitions.on_storage_error(partition, error)
        finally:
            status.is_running = False

    async def _work(
        self, cleaning: LogCleaning, dirt: Dirt, *, dry_run: bool = False
    ) -> CleaningOutcome:
        settings = self._settings
        map_bytes = settings.integer("log.cleaner.dedupe.buffer.size") // max(1, self.threads)
        load = settings.value("log.cleaner.io.buffer.load.factor")
        rate = settings.value("log.cleaner.io.max.bytes.per.second")
        assert isinstance(load, float)
        assert isinstance(rate, float)
        job = cleaning.job(
            dirt.first_dirty,
            now_ms=self._runtime.clock.now_ms(),
            keys_max=max(1, int(map_bytes // ENTRY_BYTES * load)),
            bytes_per_second=rate if rate < 1e300 else 0.0,
            dry_run=dry_run,
        )
        filesystem = cleaning.log.filesystem
        if not filesystem.is_concurrent:
            if self._directories.in_memory:
                return clean_here(filesystem, job)
            return await self._runtime.loop.run_in_executor(None, clean_here, filesystem, job)
        worker = ChildWorker()
        self._workers.add(worker)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(max(1, self.threads) + 1, "ottla-clean")
        try:
            return await self._runtime.loop.run_in_executor(self._threads, worker.run, job)
        except asyncio.CancelledError:
            worker.kill()
            raise
        finally:
            self._workers.discard(worker)

    # -- putting in place

    async def _put_in_place(self, cleaning: LogCleaning, outcome: CleaningOutcome) -> bool:
        """Replace one group of segments after another; return whether all were replaced.

        Raises StorageError.
        """
        # The ledger must explain the missing offsets below this one before followers fetch the
        # cleaned segments.
        cleaning.log.ledger.history.compacted_to(outcome.end)
        await write_ledger(self._runtime, cleaning.log)
        swaps = cleaning.swaps(outcome)
        for number, swap in enumerate(swaps):
            if not swap.still_holds or not await self._replace(swap):
                for left in swaps[number:]:
                    await self._in_thread(left.remove)
                return False
        return True

    async def _replace(self, swap: Swap) -> bool:
        swap.begin()
        await self._in_thread(swap.announce)
        if not swap.still_holds:
            return False
        swap.take_over()
        await self._in_thread(swap.put_in_place)
        self._removals.remove_later(swap.finish())
        return True

    async def _in_thread(self, job: Callable[[], None]) -> None:
        """Run a job in a thread, and wait for its end even if this task is cancelled."""
        if self._directories.in_memory:
            job()
            return
        running = self._runtime.loop.run_in_executor(None, job)
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            raise

    async def _note_cleaned(self, partition: Partition, outcome: CleaningOutcome) -> None:
        home = self._directories.home(partition.topic_partition)
        if home is None or home.logs.get(partition.topic_partition) is not partition.log:
            return
        home.checkpoints.cleaned[partition.topic_partition] = outcome.end
        await self._in_thread(home.checkpoints.prepare_cleaned().run)


def _remove_unfinished(cleaning: LogCleaning) -> None:
    """Remove the files of a failed cleaning; the next start removes any that remain."""
    filesystem, folder = cleaning.log.filesystem, cleaning.log.folder
    if cleaning.log.offline:
        return  # The folder may belong to another log by now.
    with contextlib.suppress(OSError):
        for name in filesystem.listdir(folder):
            if name.endswith(CLEANED_SUFFIX):
                filesystem.unlink(f"{folder}/{name}")


def _log_outcome(partition: Partition, outcome: CleaningOutcome) -> None:
    _log.info(
        "%s: compacted up to offset %d: %d of %d records and %d of %d bytes stay, %d keys, %d ms",
        partition.topic_partition,
        outcome.end,
        outcome.records_kept,
        outcome.records_read,
        outcome.bytes_kept,
        outcome.bytes_read,
        outcome.keys,
        outcome.elapsed_ms,
    )
