"""All log directories of a broker: where a partition lives, and what one failing disk stops.

Kafka's `log.dirs`: a new partition goes where the fewest are; a directory that fails goes offline
with its logs while the others serve.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from uuid import UUID

from ottla.base.chance import new_uuid
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.storage.directory import future_logs
from ottla.storage.directory.checkpoint_job import CheckpointJob
from ottla.storage.directory.deletion import Deletion, Departure, depart
from ottla.storage.directory.future_logs import extent, set_stray
from ottla.storage.directory.log_directory import LogDirectory
from ottla.storage.directory.meta_properties import cluster_of
from ottla.storage.directory.partition_metadata import is_damaged
from ottla.storage.disk.errors import DirectoryFailed, StorageError, storage_error
from ottla.storage.disk.filesystem import FileSystem
from ottla.storage.log.config import LogConfig
from ottla.storage.log.log import Log

# Reading from the page cache and checksums both leave the interpreter to other threads.
LOADING_THREADS = 4


@dataclass(frozen=True, slots=True)
class Wanted:
    """A partition whose log is to be opened."""

    topic_partition: TopicPartition
    topic_id: UUID
    config: LogConfig
    # Whether what can be read of a damaged log is to be served: see `salvage`.
    salvages: bool = False


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

        `flushes_first`: nothing is acknowledged before it is flushed (group commit).

        Raises OttlaError where one is another cluster's or broker's, or in use; StorageError
        where none can be used.
        """
        assert paths
        self._filesystem = filesystem
        # For logs opened from now on; the setting can be altered while the broker runs.
        self.producer_expiration_ms = producer_expiration_ms
        self._new_id = new_id
        self._flushes_first = flushes_first
        self.directories: list[LogDirectory] = []
        # Paths that could not even be opened, and why.
        self.unusable: dict[str, StorageError] = {}
        self._homes: dict[TopicPartition, LogDirectory] = {}
        # Partitions that had a folder at the start, and the topic ids these name.
        self.found_at_start: dict[TopicPartition, UUID | None] = {}
        # The same of folders that were not opened since.
        self._unopened: dict[TopicPartition, UUID | None] = {}
        # Where partitions that are not here yet are to go.
        self._preferred: dict[TopicPartition, LogDirectory] = {}
        try:
            for path in paths:
                self._add(path, cluster_id, node_id)
        except OttlaError:
            self.close({}, clean=False)
            raise
        if not self.directories:
            raise next(iter(self.unusable.values()))
        self._unopened |= self.found_at_start
        self._forget_elsewhere()

    def _forget_elsewhere(self) -> None:
        """A log that begins under such a name must not take over what is said of another."""
        for directory in self.online:
            try:
                for partition in directory.elsewhere(self._homes):
                    directory.forget(partition)
            except OSError as error:
                directory.fail(storage_error(error, directory.path, "list the logs").message)

    def _add(self, path: str, cluster_id: str, node_id: int) -> None:
        try:
            directory = LogDirectory(
                self._filesystem,
                path,
                cluster_id,
                node_id,
                self._new_id(),
                flushes_first=self._flushes_first,
            )
            self.directories.append(directory)
            folders = directory.folders()
            self.found_at_start |= folders
            for partition in folders:
                self._homes[partition] = self._settle_twice(partition, directory)
        except StorageError as error:
            self.unusable[path] = error

    def _settle_twice(self, partition: TopicPartition, found: LogDirectory) -> LogDirectory:
        """The home of a partition with a folder in `found`, and perhaps one elsewhere.

        So it is where a move ended in a crash just before the old folder was taken out. The one
        that has more stays; the other is kept by another name.
        """
        known = self._homes.get(partition)
        if known is None:
            return found
        homes = sorted((known, found), key=lambda home: extent(home, partition))
        set_stray(homes[0], partition, self._new_id())
        return homes[1]

    @staticmethod
    def find_cluster_id(filesystem: FileSystem, paths: Sequence[str]) -> str | None:
        """The cluster that one of the directories belongs to; None where all are new."""
        for path in paths:
            cluster_id = cluster_of(filesystem, path)
            if cluster_id is not None:
                return cluster_id
        return None

    @property
    def in_memory(self) -> bool:
        """Whether nothing here ever waits for a disk."""
        return self._filesystem.in_memory

    @property
    def online(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if not directory.failure]

    @property
    def kept_all(self) -> bool:
        """Whether all is here that the broker's last run acknowledged.

        Else it may lack records it is counted on for, and has to leave ISR and ELR (R-6, R-11).
        """
        return not self.unusable and all(directory.kept_all for directory in self.directories)

    def confirm_run(self) -> None:
        """The broker is registered as one that may lack records. Raises StorageError."""
        for directory in self.online:
            directory.confirm_run()

    def leftovers(self) -> list[Deletion]:
        """Removals of deleted logs that an earlier run did not finish; may run at once."""
        return [deletion for directory in self.online for deletion in directory.leftovers()]

    def partitions_on_disk(self) -> dict[TopicPartition, UUID | None]:
        """Partitions with a folder, and the topic ids these say: to find what is no topic's."""
        return {p: t for directory in self.online for p, t in directory.folders().items()}

    def open(
        self, topic_partition: TopicPartition, topic_id: UUID, config: LogConfig, *, now_ms: int
    ) -> Log:
        """Open one log, made where missing; an open one is returned as it is.

        Raises StorageError (LogCorrupt: that log only; else see `fail`).
        """
        wanted = Wanted(topic_partition, topic_id, config)
        found = self.open_all([wanted], now_ms=now_ms)[topic_partition]
        if isinstance(found, Log):
            return found
        raise found

    def open_all(
        self, wanted: Sequence[Wanted], *, now_ms: int
    ) -> dict[TopicPartition, Log | StorageError]:
        """Open many logs at once, recovering what an unclean stop left; errors are values."""
        # Threads are for reading. To make names they only wait for each other.
        threads = LOADING_THREADS if any(w.topic_partition in self._homes for w in wanted) else 1
        places: list[tuple[Wanted, LogDirectory]] = []
        found: dict[TopicPartition, Log | StorageError] = {}
        for one in wanted:
            try:
                places.append((one, self._place(one.topic_partition)))
            except StorageError as error:
                found[one.topic_partition] = error
        refused = self._forget_predecessors(places)

        def open_one(place: tuple[Wanted, LogDirectory]) -> Log | StorageError:
            one, directory = place
            if one.topic_partition in refused:
                return refused[one.topic_partition]
            try:
                return self._open(one, directory, now_ms)
            except StorageError as error:
                return error

        if len(places) < 2 or threads < 2 or not self._filesystem.is_concurrent:
            logs = [open_one(place) for place in places]
        else:
            with ThreadPoolExecutor(threads, "ottla-load") as pool:
                logs = list(pool.map(open_one, places))
        for (one, directory), log in zip(places, logs, strict=True):
            found[one.topic_partition] = log
            self._enter(one.topic_partition, directory, log)
        return found

    def _forget_predecessors(
        self, places: Sequence[tuple[Wanted, LogDirectory]]
    ) -> dict[TopicPartition, StorageError]:
        """Have no checkpoint on the disk speak of an earlier topic; where that failed, and why."""
        left: dict[LogDirectory, list[TopicPartition]] = {}
        for one, directory in places:
            partition = one.topic_partition
            known = self._unopened.pop(partition, None)
            if known not in (None, one.topic_id) and not is_damaged(known, one.topic_id):
                directory.forget(partition)
            if not directory.is_forgotten(partition):
                left.setdefault(directory, []).append(partition)
        refused: dict[TopicPartition, StorageError] = {}
        for directory, partitions in left.items():
            try:
                for job in directory.prepare_removals():
                    job.run()
            except StorageError as error:
                refused |= dict.fromkeys(partitions, error)
        return refused

    def _open(self, one: Wanted, directory: LogDirectory, now_ms: int) -> Log:
        known = directory.logs.get(one.topic_partition)
        if known is not None:
            return known
        log = directory.open_log(
            one.topic_partition,
            one.topic_id,
            one.config,
            producer_expiration_ms=self.producer_expiration_ms,
            unique=self._new_id(),
            now_ms=now_ms,
            salvages=one.salvages,
        )
        if len(self.directories) > 1:
            # Which of them it is in is decided once: its folder says so, though it be empty.
            log.make()
        return log

    def _enter(
        self, partition: TopicPartition, directory: LogDirectory, log: Log | StorageError
    ) -> None:
        if isinstance(log, Log):
            directory.logs[partition] = log
            directory.refused.pop(partition, None)
        else:
            directory.refused[partition] = log
            if isinstance(log, DirectoryFailed):
                directory.fail(log.message)

    def _place(self, partition: TopicPartition) -> LogDirectory:
        """The partition's directory; for a new one that with the fewest partitions."""
        home = self._homes.get(partition)
        if home is None:
            online = self.online
            if not online:
                raise StorageError("all log directories are offline; check the disks")
            fewest = online[0] if len(online) == 1 else self._with_fewest(online)
            preferred = self._preferred.pop(partition, fewest)
            home = fewest if preferred.failure else preferred
            self._homes[partition] = home
        if home.failure:
            raise StorageError(home.failure)
        return home

    def _with_fewest(self, online: Sequence[LogDirectory]) -> LogDirectory:
        counts = {directory.path: 0 for directory in online}
        for directory in self._homes.values():
            if not directory.failure:
                counts[directory.path] += 1
        return min(online, key=lambda directory: counts[directory.path])

    def at(self, path: str) -> LogDirectory | None:
        """The directory at `path`, failed or not; None where that is none of ours."""
        return next((found for found in self.directories if found.path == path), None)

    def prefer(self, partition: TopicPartition, directory: LogDirectory) -> None:
        """Put a partition that is not here yet there, should it come."""
        self._preferred[partition] = directory

    def open_future(
        self,
        partition: TopicPartition,
        topic_id: UUID,
        config: LogConfig,
        directory: LogDirectory,
        log_start_offset: int,
        now_ms: int,
    ) -> Log:
        """Open the copy of a partition's log in another directory, made where missing.

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

    def move(self, partition: TopicPartition, target: LogDirectory) -> Deletion:
        """Let the copy in `target`, which has all, be the partition's log. Raises StorageError.

        Both directories say so durably when this returns. The removal of the old log is left.
        """
        source = self._homes[partition]
        future = target.futures[partition]
        future.take_over(source.logs[partition])
        future.flush()
        target.recovery_points[partition] = future.recovery_point
        if future.log_start_offset > future.segments.first.base_offset:
            target.log_starts[partition] = future.log_start_offset
        if partition in target.log_starts or not target.is_forgotten(partition):
            target.prepare_values().run()
        future.rename(target.folder_of(partition))
        del target.futures[partition]
        target.logs[partition] = future
        for ours, theirs in (
            (source.high_watermarks, target.high_watermarks),
            (source.cleaned, target.cleaned),
        ):
            if partition in ours:
                theirs[partition] = ours[partition]
        self._homes[partition] = target
        # Its values in the source's checkpoints count for nothing once the folder is not there.
        return _at_once(source.take_out(partition, self._new_id()))

    def home(self, partition: TopicPartition) -> LogDirectory | None:
        """The directory that holds the partition, None where none does."""
        return self._homes.get(partition)

    def high_watermark(self, partition: TopicPartition) -> int:
        """What the last checkpoint said of the partition's high watermark; 0 for nothing."""
        home = self._homes.get(partition)
        return 0 if home is None else home.high_watermarks.get(partition, 0)

    def take_out(self, partition: TopicPartition) -> Departure:
        """Know a partition no more: `deletion.depart` renames its folder. Raises OttlaError.

        Until that is done it must not be opened again.
        """
        home = self._homes.get(partition)
        if home is None:
            raise OttlaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no log directory holds {partition}"
            )
        departure = home.take_out(partition, self._new_id())
        del self._homes[partition]
        self._unopened.pop(partition, None)
        return departure

    def forget(self, partition: TopicPartition) -> None:
        """A log is about to be taken out: the next write of checkpoints is for it, too."""
        home = self._homes.get(partition)
        if home is not None:
            home.forget(partition)

    def prepare_removals(self) -> list[CheckpointJob]:
        """What takes from the disk what checkpoints say of logs that are gone: for `depart`."""
        return [job for directory in self.online for job in directory.prepare_removals()]

    def delete(self, partition: TopicPartition) -> Deletion:
        """Take a partition out, durably, in this thread. Raises OttlaError."""
        departure = self.take_out(partition)
        return _at_once(departure, self.prepare_removals())

    def is_low(self, partition: TopicPartition, offset: int) -> bool:
        """Whether the checkpoint promises nothing of an open log from `offset` on."""
        home = self._homes[partition]
        is_sure = partition not in home.unsure and home.is_forgotten(partition)
        return is_sure and home.recovery_points.get(partition, 0) <= offset

    def hold_down(self, partition: TopicPartition, offset: int) -> LogDirectory:
        """Let checkpoints that are prepared from now on promise nothing from `offset` on.

        Returns the directory, of which one is to be written before the log is cut there.
        """
        home = self._homes[partition]
        home.floors[partition] = min(offset, home.floors.get(partition, offset))
        home.unsure.add(partition)
        return home

    def let_go(self, partition: TopicPartition) -> None:
        """Let checkpoints promise again what the log has: it is cut, or will not be."""
        home = self._homes.get(partition)
        if home is not None:
            home.floors.pop(partition, None)

    def _lower(self, partition: TopicPartition, offset: int) -> None:
        if not self.is_low(partition, offset):
            home = self.hold_down(partition, offset)
            home.prepare_checkpoints({}).run()
            home.unsure.discard(partition)
            self.let_go(partition)

    def truncate(self, partition: TopicPartition, offset: int, now_ms: int) -> list[Deletion]:
        """Truncate an open log. Raises StorageError.

        Writes the checkpoint first, in this thread, where that is not low enough (`hold_down`).
        """
        home = self._homes[partition]
        log = home.logs[partition]
        offset = log.cut_end(offset)
        log.recovery_point = min(log.recovery_point, offset)
        if partition in home.cleaned:
            home.cleaned[partition] = min(home.cleaned[partition], offset)
        self._lower(partition, offset)
        return log.truncate_to(offset, now_ms)

    def restart(self, partition: TopicPartition, offset: int, now_ms: int) -> list[Deletion]:
        """Empty an open log and let it begin at `offset`; otherwise as `truncate`."""
        home = self._homes[partition]
        log = home.logs[partition]
        least = min(log.log_start_offset, offset)
        log.recovery_point = min(log.recovery_point, least)
        home.cleaned.pop(partition, None)
        self._lower(partition, least)
        return log.restart_at(offset, now_ms)

    def fail(self, partition: TopicPartition, error: StorageError) -> list[TopicPartition]:
        """Take the directory of `partition` offline where `error` concerns it all.

        Returns the partitions that are offline now: all of the directory's for a
        DirectoryFailed, `partition` alone for a LogCorrupt, none for a DiskFull.
        """
        home = self._homes.get(partition)
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
        """One job per directory that serves; each may run in any thread."""
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
            is_clean = clean
            for log in (*directory.logs.values(), *directory.futures.values()):
                try:
                    log.close(clean=clean, now_ms=now_ms)
                except StorageError as error:
                    first, is_clean = first or error, False
            try:
                directory.close(high_watermarks, clean=is_clean)
            except StorageError as error:
                first = first or error
        self.directories = []
        if first is not None:
            raise first


def _at_once(departure: Departure, removals: Sequence[CheckpointJob] = ()) -> Deletion:
    (outcome,) = depart([departure], removals)
    if isinstance(outcome, StorageError):
        raise outcome
    return outcome
