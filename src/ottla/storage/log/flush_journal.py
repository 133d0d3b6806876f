"""The flush journal of a log directory: one fsync that makes the ends of many logs durable.

An fsync for each of a thousand logs takes hundreds of milliseconds. Instead, the unflushed ends of
their active segments are copied into one file, which is flushed once; the logs themselves are
flushed later, in the background. After a loss of power, each log is continued with the batches that
only the journal still has. Batches are compared by offset and leader epoch, as between replicas, so
an entry of an earlier state of the log changes nothing.

A journal file is a sequence of groups. All numbers are big-endian:

    group: magic (4 bytes), size of the entries (4), CRC-32C of the entries (4), entries
    entry: topic id (16), start offset (8), size of the batches (4), length of the folder's name
           (2), the folder's name in UTF-8, batches as in the log
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from threading import Lock
from typing import NamedTuple
from uuid import UUID

from ottla.base.crc32c import checksum
from ottla.base.ids import TopicPartition
from ottla.storage.disk.errors import StorageError, fsync_error, is_full, storage_error
from ottla.storage.disk.filesystem import File, FileSystem
from ottla.storage.files.names import parse_partition_folder
from ottla.storage.log.flush import LogTail

_PREFIX = "ottla-journal-"
_MAGIC = 0x0771_A001
_GROUP = Struct(">III")
_ENTRY = Struct(">16sqIH")
# A file of this size is followed by the next one.
FILE_BYTES = 32 << 20


class Entry(NamedTuple):
    """Batches of a topic's partition; the log ended at `start_offset` before them."""

    topic_id: UUID
    start_offset: int
    batches: bytes


class _EntryPlace(NamedTuple):
    """An entry found at the start: where its batches are, and what stands before them."""

    path: str
    position: int
    size: int
    topic_id: UUID
    start_offset: int


class FlushJournal:
    """The journal of the log directory at `path`.

    `write` and the job of `removal_of_old` run in a worker's threads, `entries` and `drop` in
    threads that open logs, all others on the loop. Files of an earlier run stay until all logs that
    they name were opened and flushed.
    """

    def __init__(self, filesystem: FileSystem, path: str, *, lost_power: bool) -> None:
        """Find the entries of the last run. Raises OSError."""
        self._filesystem = filesystem
        self._path = path
        # If all writes of the last run are still in the page cache, the logs lack nothing.
        self._replays = lost_power
        numbers = sorted(
            int(name.removeprefix(_PREFIX))
            for name in filesystem.listdir(path)
            if name.startswith(_PREFIX) and name.removeprefix(_PREFIX).isdecimal()
        )
        # Files whose logs may not be flushed yet, without the present one; the oldest first.
        self._old_files = [self._file_path(number) for number in numbers]
        self._pending: dict[TopicPartition, list[_EntryPlace]] = {}
        for file_path in self._old_files:
            for partition, place in _entries(filesystem, file_path):
                self._pending.setdefault(partition, []).append(place)
        # Logs are opened by several threads.
        self._lock = Lock()
        self._next_number = numbers[-1] + 1 if numbers else 0
        self._file: File | None = None
        self.size = 0
        # Set after a failed write; the logs are then flushed one by one until the next start.
        self.failed = False

    def _file_path(self, number: int) -> str:
        return f"{self._path}/{_PREFIX}{number:010}"

    @property
    def has_room(self) -> bool:
        """Whether `write` may be used.

        Not while an entry of an earlier run waits for its log, or while the present file is full
        and the logs in the file before it are not flushed.
        """
        return not self._pending and not self.failed and self.size < FILE_BYTES

    @property
    def pending(self) -> list[TopicPartition]:
        """The partitions whose entries of an earlier run were not replayed yet."""
        return list(self._pending)

    def drop(self, partition: TopicPartition) -> None:
        """Forget the entries of a partition that has no log here any more."""
        with self._lock:
            if self._pending.pop(partition, None) is not None and not self._pending:
                self.removal_of_old()()

    def entries(self, partition: TopicPartition) -> list[Entry] | None:
        """Return what the last run wrote of the partition's log, in order, to replay it.

        None if the log needs no replay. Raises StorageError.
        """
        pending = self._pending.get(partition)
        if pending is None:
            return None
        if not self._replays:
            return []
        entries = []
        for path, position, size, topic_id, start_offset in pending:
            try:
                file = self._filesystem.open(path)
                try:
                    batches = file.pread(size, position)
                finally:
                    file.close()
            except OSError as error:
                raise storage_error(error, path, "read the flush journal") from error
            entries.append(Entry(topic_id, start_offset, batches))
        return entries

    def write(self, tails: Sequence[tuple[UUID, LogTail]]) -> list[StorageError | None]:
        """Make the ends of logs durable; return an error, or None, for each.

        Raises StorageError if the journal cannot be written: DiskFull leaves it as it was.
        """
        parts: list[bytes] = [b""]
        errors: list[StorageError | None] = []
        for topic_id, tail in tails:
            try:
                batches = tail.file.pread(tail.size, tail.position)
            except OSError as error:
                errors.append(storage_error(error, tail.file.path, "flush"))
                continue
            errors.append(None)
            name = tail.folder.rpartition("/")[2].encode()
            parts.append(_ENTRY.pack(topic_id.bytes, tail.start_offset, len(batches), len(name)))
            parts += (name, batches)
        entries = b"".join(parts)
        group = _GROUP.pack(_MAGIC, len(entries), checksum(entries)) + entries
        self._append(group)
        return errors

    def _append(self, group: bytes) -> None:
        path = self._file_path(self._next_number)
        is_new = self._file is None
        try:
            if self._file is None:
                self._file = self._filesystem.open(path, create=True)
            self._file.append(group)
        except OSError as error:
            if is_full(error) and self._file is not None:
                self._undo()
            else:
                self.failed = True
            raise storage_error(error, path, "write the flush journal") from error
        try:
            self._file.fsync()
            if is_new:
                self._filesystem.fsync_directory(self._path)
        except OSError as error:
            self.failed = True
            raise fsync_error(error, path) from error
        self.size += len(group)

    def _undo(self) -> None:
        """Cut off the group that found no room."""
        assert self._file is not None
        try:
            self._file.truncate(self.size)
        except OSError:
            self.failed = True

    def roll(self) -> str:
        """End the present file; return its path. The next `write` begins another file."""
        path = self._file_path(self._next_number)
        if self._file is not None:
            self._file.close()
        self._file, self.size = None, 0
        self._next_number += 1
        self._old_files.append(path)
        return path

    def removal_of_old(self) -> Callable[[], None]:
        """Return the job that removes the files before the present one: their logs are flushed.

        A file that cannot be removed stays, and does no harm.
        """
        paths, self._old_files = self._old_files, []

        def remove() -> None:
            for path in paths:
                with contextlib.suppress(OSError):
                    self._filesystem.unlink(path)

        return remove

    def close(self, *, clean: bool) -> None:
        """Close the file; with `clean`, remove all files, because all logs are flushed."""
        if self._file is not None:
            self.roll()
        if clean and not self._pending:
            self.removal_of_old()()


def _entries(filesystem: FileSystem, path: str) -> Iterator[tuple[TopicPartition, _EntryPlace]]:
    """Yield the entries of a journal file, up to its unfinished end."""
    content = filesystem.read_bytes(path)
    position = 0
    while position + _GROUP.size <= len(content):
        magic, size, crc = _GROUP.unpack_from(content, position)
        position += _GROUP.size
        end = position + size
        if magic != _MAGIC or end > len(content):
            return
        if checksum(memoryview(content)[position:end]) != crc:
            return
        while position < end:
            topic_id, start_offset, size, name_length = _ENTRY.unpack_from(content, position)
            position += _ENTRY.size
            partition = parse_partition_folder(content[position : position + name_length].decode())
            position += name_length
            if partition is not None:
                yield (
                    partition,
                    _EntryPlace(path, position, size, UUID(bytes=topic_id), start_offset),
                )
            position += size
