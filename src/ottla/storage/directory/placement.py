"""Chooses the log directory of each partition, and opens many logs in these directories at once."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from uuid import UUID

from ottla.base.ids import TopicPartition
from ottla.storage.directory.future_logs import end_offset, set_stray
from ottla.storage.directory.log_directory import LogDirectory
from ottla.storage.disk.errors import DirectoryFailed, StorageError, storage_error
from ottla.storage.disk.filesystem import FileSystem
from ottla.storage.files.partition_metadata import is_damaged
from ottla.storage.log.log import Log
from ottla.storage.segment.config import LogConfig


class Placement:
    """Maps each partition to its home among a broker's log directories."""

    def __init__(self, new_id: Callable[[], UUID]) -> None:
        self._new_id = new_id
        self.directories: list[LogDirectory] = []
        # The directory that holds each partition.
        self.homes: dict[TopicPartition, LogDirectory] = {}
        # The directories requested for partitions that have no home yet.
        self.preferred: dict[TopicPartition, LogDirectory] = {}

    @property
    def online(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if not directory.failure]

    def take_in(self, directory: LogDirectory, partitions: Iterable[TopicPartition]) -> None:
        """Make `directory` the home of partitions that have a folder there.

        After a crash at the end of a move a partition may be in two directories. The longer log
        stays; the other folder is renamed and kept. Raises StorageError.
        """
        for partition in partitions:
            home, known = directory, self.homes.get(partition)
            if known is not None:
                less, home = sorted((known, directory), key=lambda one: end_offset(one, partition))
                set_stray(less, partition, self._new_id())
            self.homes[partition] = home

    def take_in_begun(self, directory: LogDirectory) -> None:
        """Make `directory` the home of logs of which only its flush journal is left.

        An entry for a log whose folder is in another directory, or was deleted, is dropped.
        """
        for partition in directory.journal.pending:
            home = self.homes.get(partition)
            if home is None and directory.journal.has_begun(partition):
                self.homes[partition] = directory
            elif home is not directory:
                directory.journal.drop(partition)

    def forget_elsewhere(self) -> None:
        """Drop checkpointed values of partitions whose log is not in the same directory.

        A new log of the same name there must not get another log's values.
        """
        for directory in self.online:
            try:
                for partition in directory.elsewhere(self.homes):
                    directory.forget(partition)
            except OSError as error:
                directory.fail(storage_error(error, directory.path, "list the logs").message)

    def place(self, partition: TopicPartition) -> LogDirectory:
        """Return the partition's directory. Raises StorageError.

        A new partition is placed in the preferred directory, or in that with the fewest partitions.
        """
        home = self.homes.get(partition)
        if home is None:
            online = self.online
            if not online:
                raise StorageError("all log directories are offline; check the disks")
            fewest = online[0] if len(online) == 1 else self._with_fewest(online)
            preferred = self.preferred.pop(partition, fewest)
            home = fewest if preferred.failure else preferred
            self.homes[partition] = home
        if home.failure:
            raise StorageError(home.failure)
        return home

    def _with_fewest(self, online: Sequence[LogDirectory]) -> LogDirectory:
        counts = {directory.path: 0 for directory in online}
        for directory in self.homes.values():
            if not directory.failure:
                counts[directory.path] += 1
        return min(online, key=lambda directory: counts[directory.path])


# Reading from the page cache and computing checksums both release the interpreter lock.
LOADING_THREADS = 4


@dataclass(frozen=True, slots=True)
class Wanted:
    """A partition whose log is to be opened."""

    topic_partition: TopicPartition
    topic_id: UUID
    config: LogConfig
    # Whether to serve the readable part of a damaged log: see `salvage`.
    salvages: bool = False


class LogOpening:
    """Opens logs in the directories that `placement` chooses."""

    def __init__(
        self,
        filesystem: FileSystem,
        placement: Placement,
        found_at_start: Mapping[TopicPartition, UUID | None],
        new_id: Callable[[], UUID],
    ) -> None:
        self._filesystem = filesystem
        self._placement = placement
        self._new_id = new_id
        # Partitions with a folder that was not opened since the start, and the topic id it names.
        self._unopened = dict(found_at_start)

    def forget(self, partition: TopicPartition) -> None:
        """Forget a partition whose folder is about to be deleted."""
        self._unopened.pop(partition, None)

    def open_all(
        self, wanted: Sequence[Wanted], *, producer_expiration_ms: int, now_ms: int
    ) -> dict[TopicPartition, Log | StorageError]:
        """Open many logs at once, with recovery after an unclean stop; errors are returned."""
        placement = self._placement
        found: dict[TopicPartition, Log | StorageError] = {**self._restore(wanted)}
        # Threads are for reading. When they create files they only wait for each other.
        any_exists = any(w.topic_partition in placement.homes for w in wanted)
        threads = LOADING_THREADS if any_exists else 1
        places: list[tuple[Wanted, LogDirectory]] = []
        for one in wanted:
            if one.topic_partition in found:
                continue
            try:
                places.append((one, placement.place(one.topic_partition)))
            except StorageError as error:
                found[one.topic_partition] = error
        refused = self._forget_predecessors(places)

        def open_one(place: tuple[Wanted, LogDirectory]) -> Log | StorageError:
            one, directory = place
            if one.topic_partition in refused:
                return refused[one.topic_partition]
            try:
                return self._open(one, directory, producer_expiration_ms, now_ms)
            except StorageError as error:
                return error

        if len(places) < 2 or threads < 2 or not self._filesystem.is_concurrent:
            logs = [open_one(place) for place in places]
        else:
            with ThreadPoolExecutor(threads, "ottla-load") as pool:
                logs = list(pool.map(open_one, places))
        for (one, directory), log in zip(places, logs, strict=True):
            found[one.topic_partition] = log
            _enter(one.topic_partition, directory, log)
        return found

    def _restore(self, wanted: Sequence[Wanted]) -> dict[TopicPartition, StorageError]:
        """Take the wanted logs that are in the trash out of it; return the errors."""
        placement = self._placement
        failed: dict[TopicPartition, StorageError] = {}
        for directory in placement.online:
            logs = directory.trash.logs
            kept = [
                logs[one.topic_id, one.topic_partition.partition]
                for one in (wanted if logs else ())
                if (one.topic_id, one.topic_partition.partition) in logs
                and one.topic_partition not in placement.homes
            ]
            if kept:
                errors = directory.restore(kept)
                failed |= errors
                placement.homes |= {k.name: directory for k in kept if k.name not in errors}
        return failed

    def _forget_predecessors(
        self, places: Sequence[tuple[Wanted, LogDirectory]]
    ) -> dict[TopicPartition, StorageError]:
        """Remove the values of earlier topics by these names from the checkpoints on the disk.

        Returns the partitions for which that failed, with the errors.
        """
        left: dict[LogDirectory, list[TopicPartition]] = {}
        for one, directory in places:
            partition = one.topic_partition
            known = self._unopened.pop(partition, None)
            if known not in (None, one.topic_id) and not is_damaged(known, one.topic_id):
                directory.forget(partition)
            if not directory.checkpoints.is_forgotten(partition):
                left.setdefault(directory, []).append(partition)
        refused: dict[TopicPartition, StorageError] = {}
        for directory, partitions in left.items():
            try:
                for job in directory.checkpoints.prepare_removals():
                    job.run()
            except StorageError as error:
                refused |= dict.fromkeys(partitions, error)
        return refused

    def _open(
        self, one: Wanted, directory: LogDirectory, producer_expiration_ms: int, now_ms: int
    ) -> Log:
        known = directory.logs.get(one.topic_partition)
        if known is not None:
            return known
        log = directory.open_log(
            one.topic_partition,
            one.topic_id,
            one.config,
            producer_expiration_ms=producer_expiration_ms,
            unique=self._new_id(),
            now_ms=now_ms,
            salvages=one.salvages,
        )
        if len(self._placement.directories) > 1:
            # The directory is chosen once: the folder, even an empty one, shows it.
            log.make()
        return log


def _enter(partition: TopicPartition, directory: LogDirectory, log: Log | StorageError) -> None:
    """Note in `directory` that the log was opened, or the error."""
    if isinstance(log, Log):
        directory.logs[partition] = log
        log.offline = log.offline or directory.failure
        directory.refused.pop(partition, None)
    else:
        directory.refused[partition] = log
        if isinstance(log, DirectoryFailed):
            directory.fail(log.message)
