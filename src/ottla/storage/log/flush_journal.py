"""The flush journal of a log directory: one fsync that makes the ends of many logs durable.

An fsync for each of a thousand logs takes hundreds of milliseconds. Instead, the unflushed ends of
their active segments are copied into one file, which is flushed once; the logs themselves are
flushed later, in the background. After a loss of power, each log is continued with the batches that
only the journal still has. Batches are compared by offset and leader epoch, as between replicas, so
an entry of an earlier state of the log changes nothing.

A journal file is a sequence of groups. All numbers are big-endian:

    group: magic (4 bytes), size of the entries (4), CRC-32C of the entries (4), entries
    entry: topic id (16), start offset (8), size of the batches (4), length of the folder's name
           (2), 1 if the folder may not be on the disk (1), the folder's name in UTF-8, batches as
           in the log
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
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
_MAGIC = 0x0771_A002
_GROUP = Struct(">III")
_ENTRY = Struct(">16sqIH?")
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
    is_new: bool


class FlushJournal:
    """The journal of the log directory at `path`.

    `write` and the job of `removal_of_rolled` run in a worker's threads, `entries` and `drop` in
    threads that open logs, all others on the loop. A file of an earlier run stays until all logs
    that it names were opened and flushed, or deleted.
    """

    def __init__(self, filesystem: FileSystem, path: str) -> None:
        """Find the entries of earlier runs. Raises OSError."""
        self._filesystem = filesystem
        self._path = path
        numbers = sorted(
            int(name.removeprefix(_PREFIX))
            for name in filesystem.listdir(path)
            if name.startswith(_PREFIX) and name.removeprefix(_PREFIX).isdecimal()
        )
        self._pending: dict[TopicPartition, list[_EntryPlace]] = {}
        # The partitions for whose logs each file of an earlier run is kept.
        self._kept_for: dict[str, set[TopicPartition]] = {}
        # What is damaged in these files, although later writes succeeded.
        self.damage: list[str] = []
        for number in numbers:
            self._find_entries(self._file_path(number))
        # Logs are opened by several threads.
        self._lock = Lock()
        # This run's files before the present one; the oldest first.
        self._rolled: list[str] = []
        self._next_number = numbers[-1] + 1 if numbers else 0
        self._file: File | None = None
        self._is_named = False
        self.size = 0
        # Set after a failed write; the logs are then flushed one by one until the next start.
        self.failed = False

    def _file_path(self, number: int) -> str:
        return f"{self._path}/{_PREFIX}{number:010}"

    def _find_entries(self, path: str) -> None:
        content = self._filesystem.read_bytes(path)
        partitions: set[TopicPartition] = set()
        for partition, place in _entries(path, content, self.damage):
            partitions.add(partition)
            self._pending.setdefault(partition, []).append(place)
        if partitions:
            self._kept_for[path] = partitions
        else:
            self._filesystem.unlink(path)

    @property
    def has_room(self) -> bool:
        """Whether `write` may be used: not while the present file is full, or after an error."""
        return not self.failed and self.size < FILE_BYTES

    @property
    def pending(self) -> list[TopicPartition]:
        """The partitions whose entries of an earlier run were not replayed yet."""
        return list(self._pending)

    def has_begun(self, partition: TopicPartition, topic_id: UUID | None = None) -> bool:
        """Whether an earlier run began a log of the partition whose folder may be missing.

        With `topic_id`, only a log of that topic counts.
        """
        places = self._pending.get(partition, ())
        return any(place.is_new and topic_id in (None, place.topic_id) for place in places)

    def drop(self, partition: TopicPartition) -> None:
        """Forget the entries of a partition whose log was flushed, or is here no more."""
        with self._lock:
            if self._pending.pop(partition, None) is None:
                return
            for path, partitions in list(self._kept_for.items()):
                partitions.discard(partition)
                if not partitions:
                    del self._kept_for[path]
                    self._remove([path])

    def entries(self, partition: TopicPartition) -> list[Entry] | None:
        """Return what earlier runs wrote of the partition's log, in order, to replay it.

        None if there is nothing. Raises StorageError.
        """
        pending = self._pending.get(partition)
        if pending is None:
            return None
        entries = []
        for path, places in groupby(pending, lambda place: place.path):
            try:
                file = self._filesystem.open(path)
                try:
                    entries += [
                        Entry(
                            place.topic_id,
                            place.start_offset,
                            file.pread(place.size, place.position),
                        )
                        for place in places
                    ]
                finally:
                    file.close()
            except OSError as error:
                raise storage_error(error, path, "read the flush journal") from error
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
            sizes = len(batches), len(name)
            parts.append(_ENTRY.pack(topic_id.bytes, tail.start_offset, *sizes, tail.is_new))
            parts += (name, batches)
        entries = b"".join(parts)
        group = _GROUP.pack(_MAGIC, len(entries), checksum(entries)) + entries
        self._append(group)
        return errors

    def _append(self, group: bytes) -> None:
        path = self._file_path(self._next_number)
        try:
            if self._file is None:
                self._file = self._filesystem.open(path, create=True)
            self._file.append(group)
        except OSError as error:
            self.failed = not is_full(error)
            self._undo()
            raise storage_error(error, path, "write the flush journal") from error
        try:
            self._file.fsync()
            if not self._is_named:
                self._filesystem.fsync_directory(self._path)
                self._is_named = True
        except OSError as error:
            self.failed = True
            raise fsync_error(error, path) from error
        self.size += len(group)

    def _undo(self) -> None:
        """Cut off the group that found no room."""
        try:
            if self._file is not None:
                self._file.truncate(self.size)
        except OSError:
            self.failed = True

    def roll(self) -> None:
        """End the present file. The next `write` begins another one."""
        if self._file is not None:
            self._file.close()
        self._rolled.append(self._file_path(self._next_number))
        self._file, self._is_named, self.size = None, False, 0
        self._next_number += 1

    def removal_of_rolled(self) -> Callable[[], None]:
        """Return the job that removes this run's files before the present one.

        All logs in them are flushed. A file that cannot be removed stays, and does no harm.
        """
        paths, self._rolled = self._rolled, []
        return partial(self._remove, paths)

    def _remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            with contextlib.suppress(OSError):
                self._filesystem.unlink(path)

    def close(self, *, clean: bool) -> None:
        """Close the file; with `clean`, remove this run's files, because all logs are flushed."""
        if self._file is not None:
            self.roll()
        if clean:
            self.removal_of_rolled()()


def _entries(
    path: str, content: bytes, damage: list[str]
) -> Iterator[tuple[TopicPartition, _EntryPlace]]:
    """Yield the entries of a journal file, up to its unfinished end.

    A group is written after the one before it was flushed. So a bad group that a good one follows
    is damaged: that is noted in `damage`.
    """
    position, bad = 0, -1
    while position + _GROUP.size <= len(content):
        magic, size, crc = _GROUP.unpack_from(content, position)
        start = position + _GROUP.size
        if magic != _MAGIC or start + size > len(content):
            return
        position = start + size
        if checksum(memoryview(content)[start:position]) != crc:
            bad = start if bad < 0 else bad
            continue
        if bad >= 0:
            damage.append(f"{path}: the group at byte {bad} is damaged; its records may be lost")
            bad = -1
        yield from _entries_of_group(path, content, start, position)


def _entries_of_group(
    path: str, content: bytes, position: int, end: int
) -> Iterator[tuple[TopicPartition, _EntryPlace]]:
    while position < end:
        identity, start_offset, size, name_length, is_new = _ENTRY.unpack_from(content, position)
        position += _ENTRY.size
        partition = parse_partition_folder(content[position : position + name_length].decode())
        position += name_length
        if partition is not None:
            topic_id = UUID(bytes=identity)
            place = _EntryPlace(path, position, size, topic_id, start_offset, is_new)
            yield partition, place
        position += size
