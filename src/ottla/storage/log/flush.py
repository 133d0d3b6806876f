"""One flush of a log as a job: prepared on the loop, run in a thread."""

import errno
from dataclasses import dataclass, field

from ottla.ledger.files import encode_removals
from ottla.storage.disk.errors import DirectoryFailed, DiskFull, fsync_error, storage_error
from ottla.storage.disk.filesystem import File, FileSystem
from ottla.storage.files.checkpoint import write_atomically
from ottla.storage.files.failed_flush import note_failed_flush
from ottla.storage.files.names import (
    LEDGER_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    PARTITION_METADATA,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    segment_file,
)
from ottla.storage.files.offset_ledger import LedgerJob
from ottla.storage.index.offset_index import ENTRY_SIZE as OFFSET_ENTRY_SIZE
from ottla.storage.index.time_index import ENTRY_SIZE as TIME_ENTRY_SIZE
from ottla.storage.segment.segment import Segment


@dataclass(slots=True)
class SideFile:
    """An additional file of the log: its first `keep` bytes are kept, followed by `content`.

    With `whole` it is replaced in one step.
    """

    path: str
    content: bytes
    keep: int = 0
    whole: bool = False


@dataclass(slots=True)
class WrittenIndexes:
    """The number of index entries of a segment that are in its files once the job is done."""

    segment: Segment
    offsets: int
    times: int


@dataclass(slots=True)
class FlushJob:
    """One flush of one log. `run` may be called in any thread, once; the rest on the loop.

    After `run` has returned, all offsets below `target_offset` are on the disk.
    """

    filesystem: FileSystem
    folder: str
    target_offset: int
    # Those of `rolled`, in its order, then the active segment's.
    files: list[File]
    # Counts the log's truncations when the job was made: a later one makes its target void.
    truncations: int
    side_files: list[SideFile] = field(default_factory=list)
    indexes: list[WrittenIndexes] = field(default_factory=list)
    rolled: list[Segment] = field(default_factory=list)
    snapshots: list[int] = field(default_factory=list)
    obsolete: list[str] = field(default_factory=list)
    # The records that compaction removed from segments: the state of each that is written with the
    # job.
    removals: list[tuple[Segment, int]] = field(default_factory=list)
    ledger: LedgerJob | None = None
    sync_folder: bool = False
    # The folder itself is new: its name must be on the disk before its records count as flushed.
    sync_parent: bool = False
    epoch_changes: int = 0
    # Set by `run` where the disk was too full for side files: they are derived, and come later.
    postponed: bool = False
    # Set by `run` where an fsync failed: the log must never be flushed again by this process.
    failure: DirectoryFailed | None = None

    def run(self) -> None:
        """Make it durable. Raises StorageError: a failed fsync is fatal for the directory."""
        for number, file in enumerate(self.files):
            try:
                file.fsync()
            except OSError as error:
                is_rolled = number < len(self.rolled)
                if is_rolled and error.errno == errno.EBADF:
                    # Retention has removed the segment meanwhile.
                    continue
                if error.errno in (errno.EBADF, errno.ENOENT):
                    raise storage_error(error, file.path, "flush") from error
                raise self._failed(error, file.path) from error
        self._sync_names()
        path = self.folder
        try:
            for side_file in self.side_files:
                path = side_file.path
                _write(self.filesystem, side_file)
            path = self.folder
            if self.ledger is not None:
                self.ledger.run()
            if self.side_files:
                self.filesystem.fsync_directory(self.folder)
            for path in self.obsolete:
                self.filesystem.unlink(path)
        except OSError as error:
            failure = storage_error(error, path, "write a side file")
            if not isinstance(failure, DiskFull):
                raise failure from error
            self.postponed = True

    def _sync_metadata(self) -> None:
        """Flush the topic id of a new folder: a torn one would make its records another topic's."""
        path = f"{self.folder}/{PARTITION_METADATA}"
        try:
            file = self.filesystem.open(path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(error, path, "flush") from error
        try:
            file.fsync()
        except OSError as error:
            raise self._failed(error, path) from error
        finally:
            file.close()

    def _sync_names(self) -> None:
        """Make the names of segments durable, and that of a new folder: records need both."""
        if self.sync_parent:
            self._sync_metadata()
        folders = [self.folder] if self.sync_folder else []
        if self.sync_parent:
            folders.append(self.folder.rpartition("/")[0])
        for folder in folders:
            try:
                self.filesystem.fsync_directory(folder)
            except FileNotFoundError as error:
                raise storage_error(error, folder, "flush") from error
            except OSError as error:
                raise self._failed(error, folder) from error

    def _failed(self, error: OSError, path: str) -> DirectoryFailed:
        note_failed_flush(self.filesystem, self.folder)
        self.failure = fsync_error(error, path)
        return self.failure

    def add_snapshot(self, offset: int, snapshot: bytes) -> None:
        """Write the producer snapshot of the log up to `offset`."""
        path = f"{self.folder}/{segment_file(offset, SNAPSHOT_SUFFIX)}"
        self.side_files.append(SideFile(path, snapshot, whole=True))
        self.snapshots.append(offset)

    def note_written(self) -> None:
        """Note which parts of each segment's state are now in its side files."""
        for segment, changes in self.removals:
            segment.removals_written = changes
        for written in self.indexes:
            indexes = written.segment.indexes
            indexes.offsets_written = written.offsets
            indexes.times_written = written.times

    def add_removals(self, segment: Segment) -> None:
        """Write what is known of compaction, where the file knows less."""
        if segment.has_new_removals:
            content = encode_removals(segment.removals)
            self.side_files.append(SideFile(segment.path(LEDGER_SUFFIX), content, whole=True))
            self.removals.append((segment, segment.removals.changes))

    def add_indexes(self, segment: Segment) -> None:
        """Write what the segment's indexes have gained since they were last written."""
        indexes = segment.indexes
        kept_offsets, kept_times = indexes.offsets_written, indexes.times_written
        self.side_files += [
            SideFile(
                segment.path(OFFSET_INDEX_SUFFIX),
                indexes.offsets.encode(kept_offsets),
                kept_offsets * OFFSET_ENTRY_SIZE,
            ),
            SideFile(
                segment.path(TIME_INDEX_SUFFIX),
                indexes.times.encode(kept_times),
                kept_times * TIME_ENTRY_SIZE,
            ),
        ]
        if segment.transactions.entries:
            path = segment.path(TRANSACTION_INDEX_SUFFIX)
            self.side_files.append(SideFile(path, segment.transactions.encode(), whole=True))
        self.indexes.append(WrittenIndexes(segment, len(indexes.offsets), len(indexes.times)))


def _write(filesystem: FileSystem, side_file: SideFile) -> None:
    if side_file.whole:
        write_atomically(filesystem, side_file.path, side_file.content, sync_folder=False)
        return
    file = filesystem.open(side_file.path, create=True)
    try:
        if file.size() != side_file.keep:
            file.truncate(side_file.keep)
        if side_file.content:
            file.append(side_file.content)
        file.fsync()
    finally:
        file.close()
