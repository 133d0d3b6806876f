"""Periodic work on all logs of a broker: flushes, checkpoints, producer expiration, scrubbing.

Each task has a timer of its own. Slow disk access runs in a thread.
"""

import asyncio
import logging

from ottla.base.settings import BrokerSettings
from ottla.broker.partitions.flush import Flusher
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.tasks import Chores
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.disk.errors import LogCorrupt
from ottla.storage.log.scrub import SegmentScrub, scrubs
from ottla.storage.producers.state import PRODUCERS_MAX

_log = logging.getLogger(__name__)

# The pause before the first round after a clean shutdown.
_FIRST_PAUSE_S = 60.0
_SECOND_LOOK_S = 0.5
_SHORTEST_SLEEP_S = 0.1
_LONGEST_SLEEP_S = 86_400.0


class Scrubber:
    """Reads all logs of a broker again and again to find damage."""

    def __init__(
        self,
        settings: BrokerSettings,
        runtime: Runtime,
        partitions: Partitions,
        directories: LogDirectories,
    ) -> None:
        self._settings = settings
        self._runtime = runtime
        self._partitions = partitions
        self._directories = directories
        # Completed rounds through all logs, and the damage found in them.
        self.rounds = 0
        self.damages = 0

    async def run(self) -> None:
        """Scrub forever; start at once if the broker's last shutdown was unclean."""
        clock = self._runtime.clock
        if all(directory.run.was_clean for directory in self._directories.online):
            await asyncio.sleep(_FIRST_PAUSE_S)
        while True:
            began_ms = clock.monotonic_ms()
            try:
                if self._rate > 0:
                    await self.round()
            except Exception:  # noqa: BLE001  # The supervisor of this task.
                _log.exception("looking through the logs failed")
            interval_ms = self._settings.integer("log.scrub.interval.ms")
            rest_ms = began_ms + interval_ms - clock.monotonic_ms()
            await asyncio.sleep(min(max(rest_ms / 1000, _SHORTEST_SLEEP_S), _LONGEST_SLEEP_S))

    async def round(self) -> None:
        """Scrub every log once."""
        for partition in self._partitions:
            if partition.failure is None:
                for scrub in scrubs(partition.log):
                    await self._scrub(partition, scrub)
        self.rounds += 1

    async def _scrub(self, partition: Partition, scrub: SegmentScrub) -> None:
        try:
            while not scrub.is_done and self._concerns(partition, scrub):
                taken = await self._step(scrub)
                await asyncio.sleep(self._pause_s(taken))
        except LogCorrupt:
            await self._look_again(partition, scrub)
        except OSError as error:
            if self._concerns(partition, scrub):
                _log.error("cannot check %s for damage: %s", scrub.path, error)
        finally:
            scrub.close()

    async def _look_again(self, partition: Partition, scrub: SegmentScrub) -> None:
        """Read again after damage was found, and report it only if it is still there."""
        await asyncio.sleep(_SECOND_LOOK_S)
        try:
            await self._step(scrub)
        except LogCorrupt as damage:
            if self._concerns(partition, scrub):
                self.damages += 1
                self._partitions.on_storage_error(partition, damage)

    @staticmethod
    def _concerns(partition: Partition, scrub: SegmentScrub) -> bool:
        """Whether the scrubbed segment still belongs to the partition's log."""
        return partition.failure is None and partition.log is scrub.log and scrub.still_holds

    async def _step(self, scrub: SegmentScrub) -> int:
        if self._directories.in_memory:
            return scrub.step()
        return await self._runtime.in_thread(scrub.step)

    @property
    def _rate(self) -> int:
        return self._settings.integer("log.scrub.max.bytes.per.second")

    def _pause_s(self, taken: int) -> float:
        """Seconds to pause after `taken` bytes."""
        return taken / max(self._rate, 1)


# Kafka ignores flush.ms unless log.flush.scheduler.interval.ms is set; Ottla always checks.
_FLUSH_CHECK_MS = 500

# Logs checkpointed in one turn of the loop: 40 µs each.
_CHECKPOINT_SLICE = 100

_PRODUCER_EXPIRATION = "producer.id.expiration.ms"
# Logs whose producers are checked in one turn of the loop.
_EXPIRATION_SLICE = 100


def checkpoint_interval_ms(settings: BrokerSettings) -> int:
    """Return the shortest of the checkpoint intervals, because all are written together."""
    return min(
        settings.integer("log.flush.offset.checkpoint.interval.ms"),
        settings.integer("log.flush.start.offset.checkpoint.interval.ms"),
        settings.integer("replica.high.watermark.checkpoint.interval.ms"),
    )


class Upkeep:
    """The periodic tasks on the partitions of one broker."""

    def __init__(
        self,
        settings: BrokerSettings,
        runtime: Runtime,
        partitions: Partitions,
        directories: LogDirectories,
        flusher: Flusher,
    ) -> None:
        self._settings = settings
        self._runtime = runtime
        self._partitions = partitions
        self._directories = directories
        self._flusher = flusher
        self._chores = Chores()
        self.scrubber = Scrubber(settings, runtime, partitions, directories)

    def begin(self) -> None:
        """Start the tasks, with Kafka's intervals."""
        settings, every = self._settings, self._chores.every
        if settings.text("log.flush.policy") != "group":
            scheduler_ms = settings.integer("log.flush.scheduler.interval.ms")
            every(min(scheduler_ms, _FLUSH_CHECK_MS), self.flush_by_time)
        every(settings.integer("producer.id.expiration.check.interval.ms"), self.expire_producers)
        settings.subscribe(self._on_settings)
        every(checkpoint_interval_ms(settings), self.write_checkpoints)
        self._chores.run(self.scrubber.run())

    async def stop(self) -> None:
        """Stop all tasks, running ones included."""
        await self._chores.stop()

    async def flush_by_time(self) -> None:
        """Flush logs whose unflushed records are older than `flush.ms` (P27)."""
        if not self._partitions.any_flush_by_time:
            return
        now_ms = self._runtime.clock.now_ms()
        for partition in self._partitions:
            if now_ms - partition.log.flush_state.last_flush_ms >= partition.config.flush_ms:
                partition.flush_soon()

    async def expire_producers(self) -> None:
        """Drop producers that appended nothing for producer.id.expiration.ms."""
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

    async def write_checkpoints(self) -> None:
        """Write the checkpoint files of all directories (P19).

        They have the recovery points, high watermarks and log start offsets.
        """
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

    def _on_settings(self, changed: frozenset[str]) -> None:
        if _PRODUCER_EXPIRATION in changed:
            expiration_ms = self._settings.integer(_PRODUCER_EXPIRATION)
            self._directories.producer_expiration_ms = expiration_ms
