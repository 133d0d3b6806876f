"""Holds back answers that truncate a log until the recovery-point checkpoint is lowered.

The checkpoint is lowered to the truncation offset before the log is truncated: a crash in between
must find no less than it promises. Writing it takes an fsync, which the loop does not wait for.
Meanwhile the answer counts as on its way: the follower asks for nothing else, and whatever makes
an answer stale (a new leader epoch, a lost connection) makes this one stale. The answers of one
turn of the loop share one write for each log directory.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from ottla.base.ids import TopicPartition
from ottla.broker.partitions.partition import Partition
from ottla.broker.replication.source_link import Spawn
from ottla.replica.follower import Follower
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.directory.log_directory import LogDirectory
from ottla.storage.disk.errors import StorageError
from ottla.wire.messages.fetch import PartitionData

Taken = Callable[[Partition], None]


@dataclass(slots=True, eq=False)
class _Held:
    partition: Partition
    follower: Follower
    data: PartitionData
    floor: int
    taken: Taken


class Cuts:
    """Truncations that wait for a checkpoint.

    `take` carries an answer out; `fail` is called if the checkpoint could not be written.
    """

    def __init__(
        self,
        directories: LogDirectories,
        spawn: Spawn,
        *,
        take: Callable[[Partition, PartitionData], None],
        fail: Callable[[Partition, StorageError], None],
    ) -> None:
        self._directories = directories
        self._spawn = spawn
        self._take = take
        self._fail = fail
        # The newest answer of each partition, and the answers whose checkpoint is being written.
        self._held: dict[TopicPartition, _Held] = {}
        self._next: dict[LogDirectory, list[_Held]] = {}

    def must_wait(self, partition: Partition, floor: int) -> bool:
        """Whether the recovery-point checkpoint of the log is above `floor`."""
        name = partition.topic_partition
        return name in self._held or not self._directories.is_low(name, floor)

    def hold(self, partition: Partition, floor: int, data: PartitionData, taken: Taken) -> None:
        """Keep the answer until the checkpoint is at or below `floor`; then carry it out.

        `taken` is called after that.
        """
        follower = partition.follower
        assert follower is not None
        name = partition.topic_partition
        home = self._directories.hold_down(name, floor)
        held = self._held[name] = _Held(partition, follower, data, floor, taken)
        group = self._next.setdefault(home, [])
        group.append(held)
        if len(group) == 1:
            asyncio.get_running_loop().call_soon(self._begin, home)

    def _begin(self, home: LogDirectory) -> None:
        self._spawn(self._write(home, self._next.pop(home)))

    async def _write(self, home: LogDirectory, group: list[_Held]) -> None:
        job = home.prepare_checkpoints({})
        failure: StorageError | None = None
        try:
            if home.filesystem.in_memory:
                job.run()
            else:
                await asyncio.get_running_loop().run_in_executor(None, job.run)
        except StorageError as error:
            failure = error
        if failure is None:
            home.checkpoints.note_lowered(held.partition.topic_partition for held in group)
        for held in group:
            self._release(held, home, failure)

    def _release(self, held: _Held, home: LogDirectory, failure: StorageError | None) -> None:
        partition, name = held.partition, held.partition.topic_partition
        if self._held.get(name) is not held:
            return  # The answer of a later leader epoch waits.
        del self._held[name]
        try:
            if partition.follower is held.follower:
                if failure is not None:
                    self._fail(partition, failure)
                elif self._directories.home(name) is not home:
                    self.hold(partition, held.floor, held.data, held.taken)
                    return
                else:
                    self._take(partition, held.data)
        finally:
            if name not in self._held:
                self._directories.let_go(name)
        held.taken(partition)
