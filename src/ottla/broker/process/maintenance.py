"""A broker's periodic work: flush by time, retention, expiry of producers, checkpoints.

Each chore has a timer of its own; what takes the disk long runs in a thread. A chore that fails is
logged and tried again at its next time.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.store_mark import StoreMark
from ottla.broker.partitions.flush import Flusher
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.partitions.removals import Removals
from ottla.broker.retention.keeper import RetentionKeeper
from ottla.broker.runtime.runtime import Runtime
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.disk.errors import StorageError
from ottla.storage.producers.state import PRODUCERS_MAX

_log = logging.getLogger(__name__)

# Kafka ignores flush.ms unless log.flush.scheduler.interval.ms is set, too; Ottla looks often.
_FLUSH_CHECK_MS = 500

_SPACE_CHECK_MS = 1000

# Logs whose checkpoint begins in one turn of the loop: 40 µs each.
_CHECKPOINT_SLICE = 100

_SHORTEST_INTERVAL_MS = 10

_PRODUCER_EXPIRATION = "producer.id.expiration.ms"
# Logs whose producers are looked through in one turn of the loop.
_EXPIRATION_SLICE = 100

Chore = Callable[[], Awaitable[None]]


class Maintenance:
    """The chores of one broker."""

    def __init__(
        self,
        settings: BrokerSettings,
        runtime: Runtime,
        partitions: Partitions,
        directories: LogDirectories,
        flusher: Flusher,
        retention: RetentionKeeper,
        removals: Removals,
        store_mark: StoreMark | None,
    ) -> None:
        self._settings = settings
        self._runtime = runtime
        self._partitions = partitions
        self._directories = directories
        self._flusher = flusher
        self._retention = retention
        self._removals = removals
        self._store_mark = store_mark
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin. Intervals are those of Kafka's settings."""
        settings = self._settings
        if settings.text("log.flush.policy") != "group":
            scheduler_ms = settings.integer("log.flush.scheduler.interval.ms")
            self._every(min(scheduler_ms, _FLUSH_CHECK_MS), self.flush_by_time)
        self._every(settings.integer("log.retention.check.interval.ms"), self.apply_retention)
        self._every(_SPACE_CHECK_MS, self.make_room)
        check_ms = settings.integer("producer.id.expiration.check.interval.ms")
        self._every(check_ms, self.expire_producers)
        settings.subscribe(self._on_settings)
        checkpoint_ms = min(
            settings.integer("log.flush.offset.checkpoint.interval.ms"),
            settings.integer("log.flush.start.offset.checkpoint.interval.ms"),
            settings.integer("replica.high.watermark.checkpoint.interval.ms"),
        )
        self._every(checkpoint_ms, self.write_checkpoints)
        if self._store_mark is not None:
            self._every(checkpoint_ms, self._store_mark.keep)

    async def stop(self) -> None:
        """End all chores, also those under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def flush_by_time(self) -> None:
        """Flush logs with records older than `flush.ms` that are not on the disk (P27)."""
        now_ms = self._runtime.clock.now_ms()
        for partition in self._partitions:
            if now_ms - partition.log.flush_state.last_flush_ms >= partition.config.flush_ms:
                partition.flush_soon()

    async def apply_retention(self) -> None:
        """Delete segments that retention no longer keeps."""
        now_ms = self._runtime.clock.now_ms()
        self._retention.keep_only(self._partitions)
        for partition in self._partitions:
            try:
                await self._retention.apply(partition, now_ms)
            except StorageError as error:
                self._partitions.on_storage_error(partition, error)
            await asyncio.sleep(0)

    async def make_room(self) -> None:
        """Where a disk is short of space, apply retention now and give back what is deleted."""
        if self._directories.is_short_of_space():
            await self.apply_retention()
            self._removals.remove_now()

    async def expire_producers(self) -> None:
        """Forget producers that have been silent for too long, by the setting as it is now."""
        now_ms = self._runtime.clock.now_ms()
        expiration_ms = self._settings.integer(_PRODUCER_EXPIRATION)
        for count, partition in enumerate(list(self._partitions), start=1):
            producers = partition.log.producers
            producers.expire(now_ms, expiration_ms)
            forgotten = producers.take_forgotten()
            if forgotten:
                _log.warning(
                    "%s has more than %d idempotent producers at a time: %d that appended nothing"
                    " for the longest time were forgotten, and their repeated batches would be"
                    " appended twice; find the clients that begin a producer for each batch"
                    " (`kafka-transactions.sh describe-producers`), or lower %s",
                    partition.topic_partition,
                    PRODUCERS_MAX,
                    forgotten,
                    _PRODUCER_EXPIRATION,
                )
            if count % _EXPIRATION_SLICE == 0:
                await asyncio.sleep(0)

    def _on_settings(self, changed: frozenset[str]) -> None:
        if _PRODUCER_EXPIRATION in changed:
            expiration_ms = self._settings.integer(_PRODUCER_EXPIRATION)
            self._directories.producer_expiration_ms = expiration_ms

    async def write_checkpoints(self) -> None:
        """Write recovery points, high watermarks and log starts of all directories (P19)."""
        now_ms = self._runtime.clock.now_ms()
        partitions = list(self._partitions)
        for start in range(0, len(partitions), _CHECKPOINT_SLICE):
            some = partitions[start : start + _CHECKPOINT_SLICE]
            if sum(partition.checkpoint_soon(now_ms) for partition in some):
                await self._flusher.settle()
            await asyncio.sleep(0)
        await self._flusher.settle()
        high_watermarks = self._partitions.high_watermarks()
        for job in self._directories.prepare_checkpoints(high_watermarks):
            await self._runtime.in_thread(job.run)

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
                except Exception:  # noqa: BLE001  # The supervisor of chores: the next run may succeed.
                    _log.exception("%s failed", chore.__name__)

        self._tasks.append(asyncio.get_running_loop().create_task(repeat()))
