"""Moves replicas between the log directories of this broker (KIP-113), one at a time.

A folder whose name ends with `-future` holds an unfinished copy; after a restart the broker
continues it. Clients notice only one longer flush, when the copy replaces the log in use.

The end of a move, so that neither a kill nor a loss of power at any moment loses a record:

1. The copy's files are written and flushed in a thread, while the log takes records (`prepare`).
2. The log is no longer flushed, so that it acknowledges nothing that the copy has not flushed.
3. The rest is flushed in the copy. In one turn of the loop the last records are copied, the copy
   gets the log's name, and records are appended to it from then on.
4. In a thread, the copy's name is made durable, then the old folder is renamed, durably. Until then
   both folders may have the log's name, and a start uses the longer log.
5. The copy is flushed like any log.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.partitions.removals import Removals
from ottla.broker.replication.log_copy import LogCopy, in_thread
from ottla.quota.replication import ReplicationQuota
from ottla.storage.directory.future_logs import future_folders, remove
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.directory.log_directory import LogDirectory
from ottla.storage.disk.errors import DirectoryFailed, StorageError
from ottla.storage.log.log import Log

_log = logging.getLogger(__name__)

_PAUSE_S = 1.0
_STEP_S = 0.2
# When so few bytes were copied in a step, the copy may be complete soon.
_FEW_BYTES = 256 << 10
# How often the end of a move is tried before the log is flushed again.
_TRIES = 10


class LogDirMoves:
    """The replicas to move, their target directories, and the task that moves them."""

    def __init__(
        self,
        partitions: Partitions,
        directories: LogDirectories,
        quota: ReplicationQuota,
        clock: Clock,
        spawn: Callable[..., object],
        removals: Removals,
    ) -> None:
        self._partitions = partitions
        self._directories = directories
        self._quota = quota
        self._clock = clock
        self._spawn = spawn
        self._removals = removals
        # The replicas to move and their target directories, in the order of the moves.
        self._wanted: dict[TopicPartition, LogDirectory] = {}
        # The copy being made, which `_copy` itself drops if it is no longer wanted.
        self._current: tuple[TopicPartition, LogDirectory] | None = None
        self._working = False

    def resume(self) -> None:
        """Continue the moves of an earlier run of the broker. Raises StorageError."""
        for directory in self._directories.online:
            for name, folder in future_folders(directory).items():
                home = self._directories.home(name)
                if home is directory:
                    remove(directory, folder)
                elif home is not None:
                    self._want(name, directory)

    def move(self, topic: str, index: int, path: str) -> None:
        """Start moving a replica to the directory at `path`; if it is there, cancel its move.

        Raises OttlaError: LOG_DIR_NOT_FOUND, KAFKA_STORAGE_ERROR, or REPLICA_NOT_AVAILABLE if this
        broker has no such replica. If the replica is created later, it is placed in that directory.
        """
        directory = self._directories.at(path)
        if directory is None:
            code = ErrorCode.LOG_DIR_NOT_FOUND
            if path in self._directories.unusable:
                code = ErrorCode.KAFKA_STORAGE_ERROR
            raise OttlaError(
                code, f"{path} is no log directory that this broker uses: see log.dirs"
            )
        if directory.failure:
            raise StorageError(directory.failure)
        name = TopicPartition(topic, index)
        partition = self._partitions.find(topic, index)
        if partition is None:
            self._directories.prefer(name, directory)
            raise OttlaError(
                ErrorCode.REPLICA_NOT_AVAILABLE, f"{name} has no replica on this broker"
            )
        partition.check_readable()
        if self._directories.home(name) is directory:
            self._wanted.pop(name, None)
        else:
            self._want(name, directory)
        # Copies in other directories are no longer needed.
        for other in self._directories.online:
            if other is not directory and (name, other) != self._current:
                self._drop(name, other)

    def lag(self, name: TopicPartition, copy: Log) -> int:
        """Return the number of offsets by which a copy lags."""
        partition = self._partitions.find(name.topic, name.partition)
        return 0 if partition is None else max(0, partition.log_end_offset - copy.log_end_offset)

    def _want(self, name: TopicPartition, directory: LogDirectory) -> None:
        self._wanted[name] = directory
        if not self._working:
            self._working = True
            self._spawn(self._work())

    async def _work(self) -> None:
        try:
            while self._wanted:
                name, target = self._current = next(iter(self._wanted.items()))
                try:
                    await self._copy(name, target)
                except OttlaError as error:
                    _log.error("moving %s to %s: %s", name, target.path, error.message)
                    if isinstance(error, DirectoryFailed) or target.failure:
                        self._on_failed(target, error)
                        self._wanted.pop(name, None)
                    else:
                        # A full disk may have room later; meanwhile the other moves continue.
                        self._wanted[name] = self._wanted.pop(name)
                        await asyncio.sleep(_PAUSE_S)
        finally:
            self._working, self._current = False, None

    async def _copy(self, name: TopicPartition, target: LogDirectory) -> None:
        """Copy the whole log, then replace the log in use with the copy. Raises OttlaError."""
        partition = self._partitions.find(name.topic, name.partition)
        if partition is None:
            self._wanted.pop(name, None)
            self._drop(name, target)
            return
        copy = LogCopy(
            partition,
            await self._open(partition, target),
            target,
            self._clock,
            self._removals,
            partial(self._partitions.on_storage_error, partition),
        )
        while self._is_wanted(partition, target):
            held_ms = self._quota.wait_ms(self._clock.monotonic_ms())
            if held_ms:
                # In short steps, because rate, target and role may change meanwhile.
                await asyncio.sleep(min(held_ms / 1000, _STEP_S))
                continue
            copied = await copy.step()
            if copied:
                self._quota.record(copied, self._clock.monotonic_ms())
            if copied < _FEW_BYTES:
                if await self._end(copy):
                    _log.info("%s was moved to %s", name, target.path)
                    return
                await asyncio.sleep(_STEP_S)
        if self._partitions.find(name.topic, name.partition) is not partition:
            self._wanted.pop(name, None)
        elif partition.failure is not None:
            # The copy is kept, because the source log cannot be read.
            self._wanted.pop(name, None)
            return
        self._drop(name, target)

    async def _end(self, copy: LogCopy) -> bool:
        """Put the copy in the log's place; return False if that did not work out yet.

        Raises OttlaError: the target directory, or the copy there, has failed.
        """
        partition, target = copy.partition, copy.target
        if not self._is_wanted(partition, target) or not await copy.prepare():
            return False
        # No order may delete the replica and open it anew before its old folder is renamed.
        async with self._partitions.changing:
            try:
                await partition.hold_flushes()
                for _ in range(_TRIES):
                    await copy.step()
                    if not self._is_wanted(partition, target):
                        return False
                    if copy.is_complete():
                        await self._swap(copy)
                        return True
            finally:
                partition.release_flushes()
        return False

    async def _swap(self, copy: LogCopy) -> None:
        partition, target = copy.partition, copy.target
        name, source = partition.topic_partition, self._directories.home(partition.topic_partition)
        assert source is not None
        set_aside = self._directories.move(name, target)
        partition.replace_log(copy.log)
        if self._wanted.get(name) is target:
            del self._wanted[name]
        await in_thread(copy.log, target.sync)
        try:
            self._removals.remove_later(await in_thread(copy.log, set_aside))
        except StorageError as error:
            _log.error("%s was moved, and its old log remains: %s", name, error.message)
            if isinstance(error, DirectoryFailed):
                self._on_failed(source, error)

    def _is_wanted(self, partition: Partition, target: LogDirectory) -> bool:
        name = partition.topic_partition
        return (
            self._wanted.get(name) is target
            and partition.failure is None
            and self._partitions.find(name.topic, name.partition) is partition
        )

    async def _open(self, partition: Partition, target: LogDirectory) -> Log:
        name = partition.topic_partition
        known = target.futures.get(name)
        if known is not None:
            return known

        def open_copy() -> Log:
            return self._directories.open_future(
                name,
                partition.topic_id,
                partition.config,
                target,
                partition.log_start_offset,
                self._clock.now_ms(),
            )

        if self._directories.in_memory:
            log = open_copy()
        else:
            log = await asyncio.get_running_loop().run_in_executor(None, open_copy)
        target.futures[name] = log
        return log

    def _drop(self, name: TopicPartition, directory: LogDirectory) -> None:
        """Remove a copy, unless it is the one being made."""
        if self._wanted.get(name) is directory:
            return
        log = directory.futures.pop(name, None)
        if log is None:
            return
        directory.forget(name)
        try:
            log.close(clean=False)
            remove(directory, log.folder)
        except StorageError as error:
            _log.error("%s", error.message)

    def _on_failed(self, directory: LogDirectory, error: OttlaError) -> None:
        """Take a failed target directory and all its replicas offline."""
        directory.fail(error.message)
        for name in list(directory.logs):
            partition = self._partitions.find(name.topic, name.partition)
            if partition is not None:
                partition.fail(error.message)
