"""The log directory of each partition; a new one goes where the fewest are."""

from collections.abc import Callable, Iterable, Sequence
from uuid import UUID

from ottla.base.ids import TopicPartition
from ottla.storage.directory.future_logs import extent, set_stray
from ottla.storage.directory.log_directory import LogDirectory
from ottla.storage.disk.errors import StorageError, storage_error


class Placement:
    """The home of each partition among a broker's log directories."""

    def __init__(self, new_id: Callable[[], UUID]) -> None:
        self._new_id = new_id
        self.directories: list[LogDirectory] = []
        self._homes: dict[TopicPartition, LogDirectory] = {}
        # Where partitions are to go that have no home yet.
        self._preferred: dict[TopicPartition, LogDirectory] = {}

    @property
    def online(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if not directory.failure]

    def add(self, directory: LogDirectory) -> None:
        """Let partitions be placed in `directory`, too."""
        self.directories.append(directory)

    def take_in(self, directory: LogDirectory, partitions: Iterable[TopicPartition]) -> None:
        """Let `directory` be the home of partitions that have a folder there.

        A partition may be in two directories, after a crash at the end of a move. The longer log
        stays; the other is kept by another name. Raises
        StorageError.
        """
        for partition in partitions:
            home, known = directory, self._homes.get(partition)
            if known is not None:
                less, home = sorted((known, directory), key=lambda one: extent(one, partition))
                set_stray(less, partition, self._new_id())
            self._homes[partition] = home

    def forget_elsewhere(self) -> None:
        """Drop checkpointed values of partitions whose log is not in the same directory.

        A new log there of the same name must not take over another log's values.
        """
        for directory in self.online:
            try:
                for partition in directory.elsewhere(self._homes):
                    directory.forget(partition)
            except OSError as error:
                directory.fail(storage_error(error, directory.path, "list the logs").message)

    def home(self, partition: TopicPartition) -> LogDirectory | None:
        """The directory that holds the partition, None where none does."""
        return self._homes.get(partition)

    def known_home(self, partition: TopicPartition) -> LogDirectory:
        """The directory that holds a partition that is known to have one."""
        return self._homes[partition]

    def set_home(self, partition: TopicPartition, directory: LogDirectory) -> None:
        """Note that the partition's log has moved to `directory`."""
        self._homes[partition] = directory

    def remove(self, partition: TopicPartition) -> None:
        """Forget a partition whose log is about to be deleted."""
        del self._homes[partition]

    def prefer(self, partition: TopicPartition, directory: LogDirectory) -> None:
        """If the partition is created later, place it in `directory`."""
        self._preferred[partition] = directory

    def place(self, partition: TopicPartition) -> LogDirectory:
        """The partition's directory; for a new one that with the fewest. Raises StorageError."""
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
