"""What a broker does now and then: flush by time, checkpoints, retention, removal of files.

Each is a timer of its own; what touches the disk for long runs in a thread. A task that fails is
logged and tried again at its next time.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from ottla.broker.cleaning.cleaner import Cleaner
from ottla.broker.partitions.failed_replicas import FailedReplicas
from ottla.broker.process.scrubber import Scrubber
from ottla.broker.retention.keeper import RetentionKeeper
from ottla.storage.directory.deletion import Deletion
from ottla.storage.disk.errors import StorageError, storage_error
from ottla.storage.log.log import Log

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker

_log = logging.getLogger(__name__)

# Kafka never looks at flush.ms unless log.flush.scheduler.interval.ms is set, too; we look often.
_FLUSH_CHECK_MS = 500

# Logs whose checkpoint begins in one turn of the loop: 40 µs each.
_CHECKPOINT_SLICE = 100

_SHORTEST_INTERVAL_MS = 10

_PRODUCER_EXPIRATION = "producer.id.expiration.ms"
# Logs whose producers are looked through in one turn of the loop.
_EXPIRATION_SLICE = 100

Chore = Callable[[], Awaitable[None]]


class Maintenance:
    """The chores of one broker."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._tasks: list[asyncio.Task[None]] = []
        self.scrubber = Scrubber(broker)
        self.cleaner = Cleaner(broker)
        self.retention = RetentionKeeper(broker)
        # A thread of its own: a thousand removals keep nobody else's jobs waiting.
        self._removing = ThreadPoolExecutor(1, "ottla-remove")
        # Removals that are not due yet, with their timers.
        self._deletions: dict[Deletion, asyncio.TimerHandle] = {}

    def start(self) -> None:
        """Begin. Intervals are those of Kafka's settings."""
        settings = self._broker.settings
        if not self._broker.group_commit:
            scheduler_ms = settings.integer("log.flush.scheduler.interval.ms")
            self._every(min(scheduler_ms, _FLUSH_CHECK_MS), self.flush_by_time)
        self._every(settings.integer("log.retention.check.interval.ms"), self.apply_retention)
        check_ms = settings.integer("producer.id.expiration.check.interval.ms")
        self._every(check_ms, self.expire_producers)
        settings.subscribe(self._on_settings)
        checkpoint_ms = min(
            settings.integer("log.flush.offset.checkpoint.interval.ms"),
            settings.integer("log.flush.start.offset.checkpoint.interval.ms"),
            settings.integer("replica.high.watermark.checkpoint.interval.ms"),
        )
        self._every(checkpoint_ms, self.write_checkpoints)
        if self._broker.store_mark is not None:
            self._every(checkpoint_ms, self._broker.store_mark.keep)
        broker = self._broker
        failed = FailedReplicas(broker.store, broker.broker_id, broker.spawn)
        broker.partitions.on_failed = failed.tell
        self._tasks.append(broker.loop.create_task(self.scrubber.run()))
        self.cleaner.start()

    async def stop(self) -> None:
        """Begin nothing more; files that wait for their removal are removed now."""
        await self.cleaner.stop()
        self.retention.readers.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for deletion, timer in list(self._deletions.items()):
            timer.cancel()
            self._deletions.pop(deletion, None)
            _run(deletion)
        self._removing.shutdown(wait=True)

    async def flush_by_time(self) -> None:
        """Flush logs with records older than `flush.ms` that are not on the disk (P27)."""
        now_ms = self._broker.clock.now_ms()
        for partition in self._broker.partitions:
            if now_ms - partition.log.last_flush_ms >= partition.config.flush_ms:
                partition.flush_soon()

    async def apply_retention(self) -> None:
        """Delete segments that retention no longer keeps."""
        now_ms = self._broker.clock.now_ms()
        self.retention.keep_only(self._broker.partitions)
        for partition in self._broker.partitions:
            try:
                await self.retention.apply(partition, now_ms)
            except StorageError as error:
                self._broker.partitions.on_storage_error(partition, error)
            await asyncio.sleep(0)

    async def expire_producers(self) -> None:
        """Forget producers that have been silent for too long, by the setting as it is now."""
        now_ms = self._broker.clock.now_ms()
        expiration_ms = self._broker.settings.integer(_PRODUCER_EXPIRATION)
        for count, partition in enumerate(list(self._broker.partitions), start=1):
            partition.log.expire_producers(now_ms, expiration_ms)
            if count % _EXPIRATION_SLICE == 0:
                await asyncio.sleep(0)

    def _on_settings(self, changed: frozenset[str]) -> None:
        if _PRODUCER_EXPIRATION in changed:
            expiration_ms = self._broker.settings.integer(_PRODUCER_EXPIRATION)
            self._broker.log_directories.producer_expiration_ms = expiration_ms

    async def write_ledger(self, log: Log) -> None:
        """Have what is known of a log's lost and deleted offsets on the disk. StorageError."""
        job = log.ledger.job(log.filesystem, log.folder)
        if job is None:
            return
        try:
            if log.filesystem.in_memory:
                job.run()
            else:
                await self._broker.loop.run_in_executor(None, job.run)
        except OSError as error:
            raise storage_error(error, job.path, "write the ledger") from error

    async def write_checkpoints(self) -> None:
        """Write recovery points, high watermarks and log starts of all directories (P19)."""
        broker = self._broker
        now_ms = broker.clock.now_ms()
        partitions = list(broker.partitions)
        for start in range(0, len(partitions), _CHECKPOINT_SLICE):
            some = partitions[start : start + _CHECKPOINT_SLICE]
            if sum(partition.checkpoint_soon(now_ms) for partition in some):
                await broker.flusher.settle()
            await asyncio.sleep(0)
        await broker.flusher.settle()
        for job in broker.log_directories.prepare_checkpoints(broker.partitions.high_watermarks()):
            await broker.loop.run_in_executor(None, job.run)

    def remove_later(self, deletion: Deletion) -> None:
        """Remove files after file.delete.delay.ms, when nobody reads them any more."""
        loop = asyncio.get_running_loop()
        self._deletions[deletion] = loop.call_later(
            deletion.delay_ms / 1000, self._remove, deletion
        )

    def _remove(self, deletion: Deletion) -> None:
        self._deletions.pop(deletion, None)
        if self._broker.log_directories.in_memory:
            _run(deletion)
        else:
            # To remove a file of a gigabyte takes the system a while.
            asyncio.get_running_loop().run_in_executor(self._removing, _run, deletion)

    def _every(self, interval_ms: int, chore: Chore) -> None:
        # An interval without end (Long.MAX_VALUE) is longer than a timer can be, and one of 0,
        # which Kafka allows for checkpoints, would leave no time for anything else.
        pause_s = min(max(interval_ms, _SHORTEST_INTERVAL_MS) / 1000, 86_400)

        async def repeat() -> None:
            while True:
                await asyncio.sleep(pause_s)
                try:
                    await chore()
                except StorageError as error:
                    _log.error("%s: %s", chore.__name__, error.message)
                except Exception:  # noqa: BLE001  # The supervisor of chores: the next time may go well.
                    _log.exception("%s failed", chore.__name__)

        self._tasks.append(asyncio.get_running_loop().create_task(repeat()))


def _run(deletion: Deletion) -> None:
    try:
        deletion.run()
    except OSError as error:
        _log.error("cannot remove deleted files, they go at the next start: %s", error)
