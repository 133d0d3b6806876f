"""How the last run of a broker in a log directory ended, and what it may have lost."""

import json
from dataclasses import dataclass, replace

from ottla.base.ids import TopicPartition
from ottla.storage.disk.errors import storage_error
from ottla.storage.disk.filesystem import FileSystem, write_atomically
from ottla.storage.files.names import parse_partition_folder

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
# Kafka checks only whether a broker was stopped cleanly. But a process that dies leaves its writes
# in the page cache, and a process that flushes before it acknowledges has nothing to lose. After
# either, the broker's replicas may stay eligible as leaders. Acknowledged records are lost
# only without group commit, by a power cut or a disk that was mounted anew.
RUN_MARKER = "ottla-run"


@dataclass(frozen=True, slots=True)
class RunMarker:
    """The marker of one broker run, for the next start. See `FileSystem.page_cache_id`."""

    page_cache_id: str
    flushes_first: bool

    def kept_all(self, page_cache_id: str) -> bool:
        """Return whether all that the run acknowledged is still there, however it ended."""
        return self.flushes_first or self.kept_cache(page_cache_id)

    def kept_cache(self, page_cache_id: str) -> bool:
        """Return whether all writes of the run are still there, flushed or not."""
        return self.page_cache_id != "" and self.page_cache_id == page_cache_id


def read_run_marker(filesystem: FileSystem, path: str) -> RunMarker | None:
    """Return the marker in the directory at `path`; None if there is no readable one."""
    try:
        held = json.loads(filesystem.read_bytes(f"{path}/{RUN_MARKER}"))
        return RunMarker(str(held["page_cache"]), held["flushes_first"] is True)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def encode_run_marker(marker: RunMarker) -> bytes:
    """The bytes of the file."""
    held = {
        "version": 1,
        "page_cache": marker.page_cache_id,
        "flushes_first": marker.flushes_first,
    }
    return json.dumps(held).encode()


def write_run_marker(filesystem: FileSystem, path: str, marker: RunMarker) -> None:
    """Replace the marker; the caller makes its name durable. Raises OSError."""
    content = encode_run_marker(marker)
    write_atomically(filesystem, f"{path}/{RUN_MARKER}", content, sync_folder=False)


class Run:
    """The present run in the log directory at `path`, and how the last run ended."""

    def __init__(self, filesystem: FileSystem, path: str, *, flushes_first: bool) -> None:
        """Find out how the last run ended, and write this run's marker. Raises OSError.

        `flushes_first` says that nothing is acknowledged here before it is flushed.
        """
        self._filesystem = filesystem
        self._path = path
        self.flushes_first = flushes_first
        marker = f"{path}/{CLEAN_SHUTDOWN}"
        self.was_clean = filesystem.exists(marker)
        page_cache_id = filesystem.page_cache_id(path)
        last = read_run_marker(filesystem, path)
        # Whether all records that the last run acknowledged are here. False without a last run:
        # then the directory is new, and so may be the disk.
        self.kept_all = self.was_clean or (last is not None and last.kept_all(page_cache_id))
        # Whether pages that were not flushed may be missing.
        self.lost_power = not self.was_clean and not (last and last.kept_cache(page_cache_id))
        # From here on the directory is in use: a crash must not find the clean marker.
        filesystem.unlink(marker)
        self._marker = RunMarker(page_cache_id, flushes_first)
        # Logs that still have to be recovered as after a loss of power.
        names = filesystem.listdir(path) if self.lost_power and flushes_first else []
        self._unread = {found for found in map(parse_partition_folder, names) if found}
        # A loss is remembered until the cluster knows of it, even if starts fail meanwhile.
        self._written = self._due if self.kept_all else RunMarker("", flushes_first=False)
        write_run_marker(filesystem, path, self._written)
        filesystem.fsync_directory(path)

    @property
    def _due(self) -> RunMarker:
        """The marker that should be on the disk. It shows a power loss until all logs were read."""
        return replace(self._marker, page_cache_id="") if self._unread else self._marker

    @property
    def has_unread(self) -> bool:
        """Whether a log still has to be recovered as after a loss of power."""
        return bool(self._unread)

    def note_read(self, partition: TopicPartition) -> None:
        """Record that the partition's log was opened, or is gone."""
        self._unread.discard(partition)

    def confirm(self) -> None:
        """Record that the cluster knows of the loss, so that the next start judges this run only.

        Raises StorageError.
        """
        try:
            write_run_marker(self._filesystem, self._path, self._due)
            self._written = self._due
            self._filesystem.fsync_directory(self._path)
        except OSError as error:
            raise storage_error(error, self._path, "note that this broker runs") from error

    def due_files(self) -> dict[str, bytes]:
        """Return the marker by its path, if it must be rewritten since all logs have been read."""
        if not self._written.flushes_first or self._written == self._due:
            return {}
        self._written = self._due
        return {f"{self._path}/{RUN_MARKER}": encode_run_marker(self._due)}
