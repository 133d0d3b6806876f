"""Reads all logs slowly and repeatedly, to find records damaged by the disk.

One step at a time in a thread, at a limited rate. Damage takes the replica offline, which
is reported to the controller; if others are in sync, the replica is copied anew from them.
"""

import asyncio
import logging

from ottla.base.settings import BrokerSettings
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.runtime.runtime import Runtime
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.disk.errors import LogCorrupt
from ottla.storage.log.scrub import SegmentScrub, scrubs

_log = logging.getLogger(__name__)

# After an orderly stop there is no hurry: requests come first.
_FIRST_PAUSE_S = 60.0
_SECOND_LOOK_S = 0.5
_SHORTEST_SLEEP_S = 0.1
_LONGEST_SLEEP_S = 86_400.0


class Scrubber:
    """Scrubs one broker's logs."""

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
        """Scrub forever; start soon if the broker's last stop was unclean."""
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
        """Report damage only if it is read twice: a single wrong read need not be damage."""
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
