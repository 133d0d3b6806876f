"""Removes logs and files of deleted segments from the disk, and writes ledgers."""

import asyncio
import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.broker.runtime.runtime import Runtime
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.disk.errors import storage_error
from ottla.storage.log.log import Log
from ottla.storage.segment.segments import Deletion, Departure

_log = logging.getLogger(__name__)


class Removals:
    """Deletions that wait for file.delete.delay.ms.

    Files are removed in a thread, or on the loop with `inline` (logs in memory).
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, inline: bool = False) -> None:
        self._loop = loop
        self._inline = inline
        # A separate thread, so that a thousand removals delay no other work.
        self._thread = ThreadPoolExecutor(1, "ottla-remove")
        self._waiting: dict[Deletion, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        """The number of deletions that are not yet due."""
        return len(self._waiting)

    def remove_later(self, deletion: Deletion) -> None:
        """Remove files after file.delete.delay.ms, when no fetch reads them any more."""
        self._waiting[deletion] = self._loop.call_later(
            deletion.delay_ms / 1000, self._remove, deletion
        )

    def remove_now(self) -> None:
        """Remove all waiting files now, because the disk is full."""
        for deletion, timer in list(self._waiting.items()):
            timer.cancel()
            self._remove(deletion)

    def close(self) -> None:
        """Remove all waiting files, and return when that is done."""
        for deletion, timer in list(self._waiting.items()):
            timer.cancel()
            self._waiting.pop(deletion, None)
            _run(deletion)
        self._thread.shutdown(wait=True)

    def _remove(self, deletion: Deletion) -> None:
        self._waiting.pop(deletion, None)
        if self._inline:
            _run(deletion)
        else:
            # Removing a file of a gigabyte may take long.
            self._loop.run_in_executor(self._thread, _run, deletion)


def _run(deletion: Deletion) -> None:
    try:
        deletion.run()
    except OSError as error:
        _log.error("cannot remove deleted files, trying again at the next start: %s", error)


class Departures:
    """Logs that are being removed from the log directories; they must not be opened meanwhile."""

    def __init__(self, directories: LogDirectories, removals: Removals) -> None:
        self._directories = directories
        self._removals = removals
        self._waiting: dict[TopicPartition, Departure] = {}

    def announce(self, partitions: Iterable[TopicPartition]) -> None:
        """Omit logs from the next checkpoints, which are written once, before `add` is called."""
        for partition in partitions:
            self._directories.forget(partition)

    def add(self, partition: TopicPartition, keep: UUID | None = None) -> None:
        """Close a log to be removed, and take it out of its directory. Raises OttlaError.

        The log of the topic with the id `keep` goes to the trash.
        """
        self._waiting[partition] = self._directories.take_out(partition, keep)

    async def carry_out(self) -> dict[TopicPartition, OttlaError]:
        """Rename the folders of the added logs for deletion, durably; return the errors."""
        waiting, self._waiting = self._waiting, {}
        if not waiting:
            return {}
        departures, removals = list(waiting.values()), self._directories.prepare_removals()
        if self._directories.in_memory:
            outcomes = self._directories.depart(departures, removals)
        else:
            loop = asyncio.get_running_loop()
            outcomes = await loop.run_in_executor(
                None, self._directories.depart, departures, removals
            )
        failed: dict[TopicPartition, OttlaError] = {}
        for partition, outcome in zip(waiting, outcomes, strict=True):
            if isinstance(outcome, Deletion):
                self._removals.remove_later(outcome)
            else:
                failed[partition] = outcome
        return failed


async def write_ledger(runtime: Runtime, log: Log) -> None:
    """Write the current ledger of a log to the disk. Raises StorageError."""
    job = log.ledger.job(log.filesystem, log.folder)
    if job is None:
        return
    try:
        if log.filesystem.in_memory:
            job.run()
        else:
            await runtime.in_thread(job.run)
    except OSError as error:
        raise storage_error(error, job.path, "write the ledger") from error
