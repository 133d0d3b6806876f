"""All log directories of a broker: opens, moves and deletes logs, and takes failed disks offline.

Kafka's `log.dirs`: a new partition is placed in the directory with the fewest partitions. A
directory that fails goes offline with its logs while the others serve.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from uuid import UUID

from ottla.base.chance import new_uuid
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.storage.directory import future_logs, trash
from ottla.storage.directory.log_directory import LogDirectory
from ottla.storage.directory.meta_properties import cluster_of
from ottla.storage.directory.placement import LogOpening, Placement, Wanted
from ottla.storage.disk.errors import DirectoryFailed, StorageError
from ottla.storage.disk.filesystem import FileSystem
from ottla.storage.disk.reserve import Ballast
from ottla.storage.files.checkpoint import CheckpointJob
from ottla.storage.log.log import Log
from ottla.storage.segment.config import LogConfig
from ottla.storage.segment.segments import Deletion, Departure, depart


class LogDirectories:
    """The directories at `paths`. One thread owns them; `open_all` uses threads of its own."""

    def __init__(
        self,
        filesystem: FileSystem,
        paths: Sequence[str],
        *,
        cluster_id: str,
        node_id: int,
        producer_expiration_ms: int = 86_400_000,
        flushes_first: bool = False,
        new_id: Callable[[], UUID] = new_uuid,
    ) -> None:
        """Claim and lock the directories. One that fails is offline from the start.

        `flushes_first` says that nothing is acknowledged before it is flushed (group commit).
        Raises OttlaError if a directory is in use, or belongs to another cluster or broker;
        StorageError if none can be used.
        """
        assert paths
        self.filesystem = filesystem
        # For logs opened from now on; the setting may change while the broker runs.
        self.producer_expiration_ms = producer_expiration_ms
        self._new_id = new_id
        self._placement = Placement(new_id)
        # Paths that could not even be opened, and why.
        self.unusable: dict[str, StorageError] = {}
        # Partitions that had a folder at the start, and the topic ids in the folders.
        self.found_at_start: dict[TopicPartition, UUID | None] = {}
        try:
            for path in paths:
                self._add(path, cluster_id, node_id, flushes_first=flushes_first)
        except OttlaError:
            self.close({}, clean=False)
            raise
        if not self.directories:
            raise next(iter(self.unusable.values()))
        for directory in self.directories:
            self._placement.take_in_begun(directory)
        self._placement.forget_elsewhere()
        self._opening = LogOpening(filesystem, self._placement, self.found_at_start, new_id)

    def _add(self, path: str, cluster_id: str, node_id: int, *, flushes_first: bool) -> None:
        try:
            directory = LogDirectory(
                self.filesystem,
                path,
                cluster_id,
                node_id,
                self._new_id(),
                flushes_first=flushes_first,
            )
            self._placement.directories.append(directory)
            folders = directory.folders()
            directory.trash.forget_live(folders)
            self.found_at_start |= folders
            self._placement.take_in(directory, folders)
        except StorageError as error:
            self.unusable[path] = error

    @staticmethod
    def find_cluster_id(filesystem: FileSystem, paths: Sequence[str]) -> str | None:
        """Return the cluster to which one of the directories belongs; None if all are new."""
        for path in paths:
            cluster_id = cluster_of(filesystem, path)
            if cluster_id is not None:
                return cluster_id
        return None

    @property
    def in_memory(self) -> bool:
        """Whether all directories are in memory, so that no call waits for a disk."""
        return self.filesystem.in_memory

    @property
    def directories(self) -> list[LogDirectory]:
        """The directories that could be opened, failed or not."""
        return self._placement.directories

    @property
    def online(self) -> list[LogDirectory]:
        return self._placement.online

    @property
    def kept_all(self) -> bool:
        """Whether the directories hold all that the broker's last run acknowledged.

        Otherwise the broker may lack committed records, and has to leave ISR and ELR (R-6,
        R-11).
        """
        return not self.unusable and all(directory.run.kept_all for directory in self.directories)

    def is_short_of_space(self) -> bool:
        """Whether a directory's disk refuses appends, or will soon."""
        return any(directory.reserve.is_short() for directory in self.online)

    def missing_ballast(self) -> list[Ballast]:
        """Return the ballast of each directory that lacks it and whose disk has room."""
        if self.in_memory:
            return []
        missing = [one for one in self.online if not one.ballast.is_made]
        return [one.ballast for one in missing if not one.reserve.is_short()]

    def give_up_ballast(self, partition: TopicPartition) -> bool:
        """Remove the ballast on the disk of a partition's log; return whether that made room."""
        directory = self.home(partition)
        return directory is not None and directory.ballast.give_up()

    def confirm_run(self) -> None:
        """Note that the broker is registered as unclean. Raises StorageError."""
        for directory in self.online:
            directory.run.confirm()

    def leftovers(self) -> list[Deletion]:
        """Return the removals of deleted logs that an earlier run did not finish.

        They may run at once.
        """
        return [deletion for directory in self.online for deletion in directory.leftovers()]

    def open(
        self, topic_partition: TopicPartition, topic_id: UUID, config: LogConfig, *, now_ms: int
    ) -> Log:
        """Open one log, created if it is missing; a log that is open is returned unchanged.

        Raises StorageError: a LogCorrupt concerns that log only, for other errors see `fail`.
        """
        wanted = Wanted(topic_partition, topic_id, config)
        found = self.open_all([wanted], now_ms=now_ms)[topic_partition]
        if isinstance(found, Log):
            return found
        raise found

    def open_all(
        self, wanted: Sequence[Wanted], *, now_ms: int
    ) -> dict[TopicPartition, Log | StorageError]:
        """Open many logs at once, with recovery after an unclean stop; errors are returned."""
        return self._opening.open_all(
            wanted, producer_expiration_ms=self.producer_expiration_ms, now_ms=now_ms
        )

    def at(self, path: str) -> LogDirectory | None:
        """Return the directory at `path`, failed or not; None if the broker has none there."""
        return next((found for found in self.directories if found.path == path), None)

    def forget_unassigned(self, is_assigned: Callable[[TopicPartition], bool]) -> None:
        """Forget logs of which only a flush journal is left, unless they are assigned."""
        for directory in self.directories:
            for partition in directory.journal.pending:
                if self.found_at_start.get(partition) is None and not is_assigned(partition):
                    directory.journal.drop(partition)
                    if partition not in self.found_at_start:
                        del self._placement.homes[partition]

    def prefer(self, partition: TopicPartition, directory: LogDirectory) -> None:
        """If the partition is created later, place it in `directory`."""
        self._placement.preferred[partition] = directory

    def open_future(
        self,
        partition: TopicPartition,
        topic_id: UUID,
        config: LogConfig,
        directory: LogDirectory,
        log_start_offset: int,
        now_ms: int,
    ) -> Log:
        """Open the copy of a partition's log in another directory, created if it is missing.

        May run in a thread of its own. Raises StorageError.
        """
        return future_logs.open_future(
            directory,
            partition,
            topic_id,
            config,
            log_start_offset,
            self._new_id(),
            self.producer_expiration_ms,
            now_ms,
        )

    def move(self, partition: TopicPartition, target: LogDirectory) -> Callable[[], Deletion]:
        """Make the complete copy in `target` the partition's log. Raises StorageError.

        Returns the job that sets the old folder aside, after `target.sync` in the same thread or
        another one. See `future_logs.put_in_place`.
        """
        source = self._placement.homes[partition]
        departure = future_logs.put_in_place(partition, source, target, self._new_id())
        self._placement.homes[partition] = target
        # Its values in the source's checkpoints are ignored once the folder is gone.
        return partial(_at_once, departure)

    def home(self, partition: TopicPartition) -> LogDirectory | None:
        """Return the directory that holds the partition, None if there is none."""
        return self._placement.homes.get(partition)

    def high_watermark(self, partition: TopicPartition) -> int:
        """Return the partition's high watermark in the last checkpoint; 0 if it has none."""
        home = self.home(partition)
        return 0 if home is None else home.checkpoints.high_watermarks.get(partition, 0)

    def take_out(self, partition: TopicPartition, keep: UUID | None = None) -> Departure:
        """Remove a partition, so that `depart` can rename its folder. Raises OttlaError.

        If its log belongs to the topic with the id `keep`, it goes to the trash.

        Until the folder is renamed, the partition must not be opened again.
        """
        home = self.home(partition)
        if home is None:
            raise OttlaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no log directory holds {partition}"
            )
        departure = home.take_out(partition, self._new_id(), keep)
        del self._placement.homes[partition]
        self._opening.forget(partition)
        return departure

    def depart(
        self, departures: Sequence[Departure], removals: Sequence[CheckpointJob]
    ) -> list[Deletion | StorageError]:
        """Rename folders, and record those that stay in the trash. May run in any thread."""
        recorded = trash.record([one.trash for one in self.online], departures)
        return depart(recorded, removals)

    def kept(self, topic_id: UUID, partition: int) -> trash.KeptLog | None:
        """Return a log in the trash; None if there is none."""
        found = (one.trash.logs.get((topic_id, partition)) for one in self.online)
        return next((kept for kept in found if kept is not None), None)

    def purge(self, topic_id: UUID) -> list[Deletion]:
        """Take the logs of a deleted topic out of the trash; return the jobs that remove them."""
        jobs: list[Deletion] = []
        for directory in self.online:
            for key in [key for key in directory.trash.logs if key[0] == topic_id]:
                folder = directory.trash.logs.pop(key).folder
                if folder:
                    path = f"{directory.path}/{folder}"
                    jobs.append(Deletion(self.filesystem, [], [], 0, folder=path))
        return jobs

    def forget(self, partition: TopicPartition) -> None:
        """Leave a log that is about to be removed out of the next checkpoints."""
        home = self.home(partition)
        if home is not None:
            home.forget(partition)

    def prepare_removals(self) -> list[CheckpointJob]:
        """Return the jobs that remove deleted logs' values from the checkpoints, for `depart`."""
        return [job for one in self.online for job in one.checkpoints.prepare_removals()]

    def delete(self, partition: TopicPartition) -> Deletion:
        """Remove a partition and rename its folder, durably, in this thread. Raises OttlaError."""
        departure = self.take_out(partition)
        return _at_once(departure, self.prepare_removals())

    def is_low(self, partition: TopicPartition, offset: int) -> bool:
        """Whether an open log's recovery-point checkpoint on the disk is at or below `offset`."""
        return self._placement.homes[partition].checkpoints.is_low(partition, offset)

    def hold_down(self, partition: TopicPartition, offset: int) -> LogDirectory:
        """Limit the log's checkpoints that are prepared from now on to `offset`.

        Returns the directory, whose checkpoints must be written before the log is truncated there.
        """
        home = self._placement.homes[partition]
        home.checkpoints.hold_down(partition, offset)
        return home

    def let_go(self, partition: TopicPartition) -> None:
        """End the limit of `hold_down`, after the truncation or without one."""
        home = self.home(partition)
        if home is not None:
            home.checkpoints.let_go(partition)

    def truncate(self, partition: TopicPartition, offset: int, now_ms: int) -> list[Deletion]:
        """Truncate an open log, after lowering its checkpoint if needed. Raises StorageError."""
        return self._placement.homes[partition].truncate(partition, offset, now_ms)

    def restart(self, partition: TopicPartition, offset: int, now_ms: int) -> list[Deletion]:
        """Drop all records of an open log and start it at `offset`; otherwise like `truncate`."""
        return self._placement.homes[partition].restart(partition, offset, now_ms)

    def fail(self, partition: TopicPartition, error: StorageError) -> list[TopicPartition]:
        """Take the whole directory of `partition` offline if `error` is a DirectoryFailed.

        Returns the partitions that are offline now: all of the directory's for a
        DirectoryFailed, `partition` alone for a LogCorrupt, none for a DiskFull.
        """
        home = self.home(partition)
        if home is None:
            return []
        if isinstance(error, DirectoryFailed):
            home.fail(error.message)
            return list(home.logs)
        if error.stops_log and partition in home.logs:
            home.logs[partition].offline = error.message
            home.refused[partition] = error
            return [partition]
        return []

    def prepare_checkpoints(
        self, high_watermarks: Mapping[TopicPartition, int]
    ) -> list[CheckpointJob]:
        """Return one job per online directory; each may run in any thread."""
        return [directory.prepare_checkpoints(high_watermarks) for directory in self.online]

    def write_checkpoints(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write all checkpoints at once, in this thread. Raises StorageError."""
        for job in self.prepare_checkpoints(high_watermarks):
            job.run()

    def close(
        self,
        high_watermarks: Mapping[TopicPartition, int],
        *,
        clean: bool,
        now_ms: int | None = None,
    ) -> None:
        """Close all logs and directories. Raises the first StorageError when all are closed."""
        first: StorageError | None = None
        for directory in self.directories:
            errors = directory.close_logs(clean=clean, now_ms=now_ms)
            try:
                directory.close(high_watermarks, clean=clean and not errors)
            except StorageError as error:
                errors.append(error)
            first = next(iter(errors), first)
        self.directories.clear()
        if first is not None:
            raise first


def _at_once(departure: Departure, removals: Sequence[CheckpointJob] = ()) -> Deletion:
    (outcome,) = depart([departure], removals)
    if isinstance(outcome, StorageError):
        raise outcome
    return outcome
