"""Removes logs: their folders are renamed in a thread, many with one flush."""

import asyncio
from collections.abc import Iterable

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.broker.partitions.removals import Removals
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.segment.segments import Deletion, Departure, depart


class Departures:
    """Logs being removed from the broker's log directories.

    Callers must not open one of them meanwhile.
    """

    def __init__(self, directories: LogDirectories, removals: Removals) -> None:
        self._directories = directories
        self._removals = removals
        self._waiting: dict[TopicPartition, Departure] = {}

    def announce(self, partitions: Iterable[TopicPartition]) -> None:
        """Announce logs to be added in slices, whose checkpoints are written once for all."""
        for partition in partitions:
            self._directories.forget(partition)

    def add(self, partition: TopicPartition) -> None:
        """Take a log out of its directory. Raises OttlaError."""
        self._waiting[partition] = self._directories.take_out(partition)

    async def carry_out(self) -> dict[TopicPartition, OttlaError]:
        """Rename the folders of the added logs durably; return the failures with their errors."""
        waiting, self._waiting = self._waiting, {}
        if not waiting:
            return {}
        departures, removals = list(waiting.values()), self._directories.prepare_removals()
        if self._directories.in_memory:
            outcomes = depart(departures, removals)
        else:
            loop = asyncio.get_running_loop()
            outcomes = await loop.run_in_executor(None, depart, departures, removals)
        failed: dict[TopicPartition, OttlaError] = {}
        for partition, outcome in zip(waiting, outcomes, strict=True):
            if isinstance(outcome, Deletion):
                self._removals.remove_later(outcome)
            else:
                failed[partition] = outcome
        return failed
