"""One flush of a log as a job: prepared on the loop, run in a thread."""

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from ottla.ledger.files import encode_removals
from ottla.storage.disk.errors import DirectoryFailed, DiskFull, fsync_error, storage_error
from ottla.storage.disk.filesystem import File, FileSystem, write_atomically
from ottla.storage.files.names import (
    LEADER_EPOCHS,
    LEDGER_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    PARTITION_METADATA,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    segment_file,
)
from ottla.storage.files.offset_ledger import LedgerJob, OffsetLedger
from ottla.storage.index.leader_epochs import LeaderEpochs
from ottla.storage.index.offset_index import ENTRY_SIZE as OFFSET_ENTRY_SIZE
from ottla.storage.index.time_index import ENTRY_SIZE as TIME_ENTRY_SIZE
from ottla.storage.producers import snapshot as producer_snapshot
from ottla.storage.producers.state import ProducerStates
from ottla.storage.recovery.leftovers import note_failed_flush
from ottla.storage.segment.segment import Segment
from ottla.storage.segment.segments import Segments


@dataclass(slots=True)
class SideFile:
    """A write to a file other than the log file, such as an index.

    The file's first `keep` bytes stay, followed by `content`. With `whole` the file is replaced
    atomically. A function as `content` is called when the job runs.
    """

    path: str
    content: bytes | Callable[[], bytes]
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
    """One flush of one log. `run` may be called once, in any thread; other methods on the loop.

    After `run` has returned, all offsets below `target_offset` are on the disk.
    """

    filesystem: FileSystem
    folder: str
    target_offset: int
    # The files of `rolled`, in the same order, then the active segment's file.
    files: list[File]
    # The log's truncation count when the job was made. A later truncation makes the target void.
    truncations: int
    side_files: list[SideFile] = field(default_factory=list)
    indexes: list[WrittenIndexes] = field(default_factory=list)
    rolled: list[Segment] = field(default_factory=list)
    snapshots: list[int] = field(default_factory=list)
    obsolete: list[str] = field(default_factory=list)
    # Segments whose compaction removals the job writes, each with its change count at that time.
    removals: list[tuple[Segment, int]] = field(default_factory=list)
    ledger: LedgerJob | None = None
    sync_folder: bool = False
    # The folder itself is new: its name must be on the disk before its records count as flushed.
    sync_parent: bool = False
    # Set if the parent was flushed since the job was made, for many new folders at once.
    parent_is_synced: bool = False
    # The change count of the leader epochs that the job writes; None if it does not write them.
    epoch_changes: int | None = None
    # The base offset and size of the active segment when the job was made.
    active_base: int = -1
    active_size: int = 0
    # Set by `run` if the disk was too full for side files. They are derived, so a later flush
    # writes them.
    postponed: bool = False
    # Set by `run` if an fsync failed: the log must never be flushed again by this process.
    failure: DirectoryFailed | None = None

    def run(self) -> None:
        """Flush the log's files and write the side files.

        Raises StorageError; a failed fsync is fatal for the log directory.
        """
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
        if self.sync_parent:
            self._sync_metadata()
        path = self.folder
        has_new_names = self.sync_folder or bool(self.side_files)
        try:
            for side_file in self.side_files:
                path = side_file.path
                _write(self.filesystem, side_file)
            path = self.folder
            if self.ledger is not None and self.ledger.run():
                # That has flushed the names of all files in the folder.
                has_new_names = False
        except OSError as error:
            failure = storage_error(error, path, "write a side file")
            if not isinstance(failure, DiskFull):
                raise failure from error
            self.postponed = True
        self._sync_names([self.folder] if has_new_names else [])
        if not self.postponed:
            self._remove_obsolete()

    def _sync_metadata(self) -> None:
        """Flush a new folder's topic id file: a torn id would make its records another topic's."""
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

    def _sync_names(self, folders: list[str]) -> None:
        """Flush the directory entries in `folders`, and that of a new folder."""
        if self.sync_parent and not self.parent_is_synced:
            folders.append(self.parent)
        for folder in folders:
            try:
                self.filesystem.fsync_directory(folder)
            except FileNotFoundError as error:
                raise storage_error(error, folder, "flush") from error
            except OSError as error:
                raise self._failed(error, folder) from error

    @property
    def parent(self) -> str:
        """The folder that holds the log's folder."""
        return self.folder.rpartition("/")[0]

    def _remove_obsolete(self) -> None:
        path = self.folder
        try:
            for path in self.obsolete:
                self.filesystem.unlink(path)
        except OSError as error:
            raise storage_error(error, path, "remove a producer snapshot") from error

    def _failed(self, error: OSError, path: str) -> DirectoryFailed:
        note_failed_flush(self.filesystem, self.folder)
        self.failure = fsync_error(error, path)
        return self.failure

    def add_snapshot(self, offset: int, packed: list[bytes]) -> None:
        """Write the producer snapshot of the log up to `offset`."""
        path = f"{self.folder}/{segment_file(offset, SNAPSHOT_SUFFIX)}"
        content = partial(producer_snapshot.encode, packed)
        self.side_files.append(SideFile(path, content, whole=True))
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
        """Let the job write the segment's compaction removals if their file is out of date."""
        if segment.has_new_removals:
            content = encode_removals(segment.removals)
            self.side_files.append(SideFile(segment.path(LEDGER_SUFFIX), content, whole=True))
            self.removals.append((segment, segment.removals.changes))

    def add_indexes(self, segment: Segment) -> None:
        """Let the job write the index entries that were added since the last write."""
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
    content = side_file.content if isinstance(side_file.content, bytes) else side_file.content()
    if side_file.whole:
        write_atomically(filesystem, side_file.path, content, sync_folder=False)
        return
    file = filesystem.open(side_file.path, create=True)
    try:
        if file.size() != side_file.keep:
            file.truncate(side_file.keep)
        if content:
            file.append(content)
        file.fsync()
    finally:
        file.close()


@dataclass(slots=True)
class LogTail:
    """The unflushed end of a log's active segment, to be copied into the flush journal.

    It has `size` bytes from `position` of `file`. The log ended at `start_offset` before them, and
    ends at `end_offset` after them. A later truncation makes it void. `is_new` says that the log's
    folder may not be on the disk: then all records of the log are in the journal.
    """

    folder: str
    file: File
    position: int
    size: int
    start_offset: int
    end_offset: int
    segment_base: int
    truncations: int
    is_new: bool


# A longer end is flushed in its own file, instead of being written twice.
TAIL_BYTES_MAX = 64 << 10
# Number of snapshots kept whose offset is no segment's base offset: the newest one, and the one
# that the last recovery point checkpoint may need.
LOOSE_SNAPSHOTS_KEPT = 2
# Roughly the most bytes that recovery may have to read of one log.
CHECKPOINT_BYTES = 64 << 20


class FlushableLog(Protocol):
    """The part of a log that a flush uses."""

    filesystem: FileSystem
    folder: str
    segments: Segments
    leader_epochs: LeaderEpochs
    producers: ProducerStates
    ledger: OffsetLedger
    log_end_offset: int
    truncations: int


class FlushState:
    """Tracks which parts of one log are flushed."""

    __slots__ = (
        "_checkpointed_size",
        "_complete_at",
        "_durable_base",
        "_durable_size",
        "_epoch_changes_written",
        "_last_job",
        "_rolled_snapshots",
        "durable_offset",
        "has_new_files",
        "has_new_folder",
        "is_new",
        "last_flush_ms",
        "parent_is_synced",
        "recovery_point",
        "rolled",
        "snapshots",
    )

    def __init__(
        self,
        recovery_point: int,
        rolled: list[Segment],
        snapshots: list[int],
        checkpointed_size: int,
        now_ms: int,
    ) -> None:
        # All records below this offset are in flushed segments.
        self.recovery_point = recovery_point
        # All records below this offset are on the disk, in segments or in the flush journal.
        self.durable_offset = recovery_point
        # The size up to which the segment with this base offset is on the disk; -1 if unknown.
        self._durable_base, self._durable_size = -1, 0
        self.last_flush_ms = now_ms
        # Closed segments that may not be flushed yet. After recovery: the segments that it had to
        # read.
        self.rolled = rolled
        # The producers when these segments were closed, as (offset, `ProducerStates.packed`).
        self._rolled_snapshots: list[tuple[int, list[bytes]]] = []
        # Offsets of the producer snapshots on the disk, sorted.
        self.snapshots = snapshots
        # Size of the active segment when its indexes and a producer snapshot were last written.
        self._checkpointed_size = checkpointed_size
        # The change count of the leader epochs when their file was last written; -1 if unknown.
        self._epoch_changes_written = -1
        # Whether the folder has names that may not be on the disk yet.
        self.has_new_files = True
        # Whether the folder's own directory entry may not be on the disk; the first flush makes it
        # durable.
        self.has_new_folder = False
        # Whether the log was begun by this process, and none of its files was flushed or truncated.
        # A power cut may then take all of them, which the flush journal makes up for.
        self.is_new = False
        # Whether the caller flushes the names of new folders, once for many logs.
        self.parent_is_synced = False
        # The log's end and truncation count when all its files were on the disk; None if unknown.
        self._complete_at: tuple[int, int] | None = None
        self._last_job: FlushJob | None = None

    def begin(self) -> None:
        """Record that the log is a new one, whose folder is made by its first append."""
        self.is_new = self.has_new_folder = True
        self._durable_base = 0

    def prepare(self, log: FlushableLog, *, checkpoint: bool) -> FlushJob:
        """Build the job that makes all records appended to `log` so far durable."""
        active, end = log.segments.active, log.log_end_offset
        grown_bytes = active.size - self._checkpointed_size
        job = FlushJob(log.filesystem, log.folder, end, [], log.truncations)
        job.rolled = list(self.rolled)
        job.sync_folder = self.has_new_files or self.has_new_folder or bool(job.rolled)
        job.sync_parent = self.has_new_folder
        job.parent_is_synced = self.parent_is_synced
        checkpoint = (
            checkpoint
            or grown_bytes >= CHECKPOINT_BYTES
            # Recovery takes a snapshot as proof that all records before it were flushed.
            or len(job.rolled) > len(self._rolled_snapshots)
        )
        # Batches carry their epochs, so only a recovery that begins at a snapshot needs the file.
        if checkpoint or self._rolled_snapshots:
            self._add_epochs(job, log)
        for segment in job.rolled:
            job.files.append(segment.file)
            job.add_indexes(segment)
            job.add_removals(segment)
        job.add_removals(active)
        if checkpoint or job.rolled or self.has_new_folder or log.ledger.has_news:
            job.ledger = log.ledger.job(log.filesystem, log.folder)
        for offset, packed in self._rolled_snapshots:
            job.add_snapshot(offset, packed)
        if self.recovery_point < end or job.sync_folder:
            job.files.append(active.file)
            active.remember(end, active.size)
        if checkpoint:
            self._add_checkpoint(job, log)
        job.active_base, job.active_size = active.base_offset, active.size
        self._last_job = job
        return job

    def tail(self, log: FlushableLog) -> LogTail | None:
        """Return the unflushed end of `log`; None if only a `FlushJob` makes it durable.

        That is so if the log has other news than batches in its active segment, or too many.
        """
        active = log.segments.active
        size = active.size - self._durable_size
        if (
            self._durable_base != active.base_offset
            or not 0 < size <= TAIL_BYTES_MAX
            or (not self.is_new and (self.has_new_files or self.has_new_folder))
            or self.rolled
            or active.has_new_removals
            or log.ledger.has_news
        ):
            return None
        end = log.log_end_offset
        active.remember(end, active.size)
        return LogTail(
            log.folder,
            active.file,
            self._durable_size,
            size,
            self.durable_offset,
            end,
            active.base_offset,
            log.truncations,
            self.is_new,
        )

    def on_journaled(self, tail: LogTail, truncations: int) -> None:
        """Record that `tail` is in the flush journal; `truncations` is the log's present count."""
        if tail.truncations == truncations and tail.end_offset > self.durable_offset:
            self._note_durable(tail.end_offset, tail.segment_base, tail.position + tail.size)

    def _note_durable(self, offset: int, segment_base: int, size: int) -> None:
        self.durable_offset = offset
        self._durable_base, self._durable_size = segment_base, size

    def _add_epochs(self, job: FlushJob, log: FlushableLog) -> None:
        if log.leader_epochs.changes != self._epoch_changes_written:
            job.epoch_changes = log.leader_epochs.changes
            path = f"{log.folder}/{LEADER_EPOCHS}"
            job.side_files.append(SideFile(path, log.leader_epochs.encode(), whole=True))

    def _add_checkpoint(self, job: FlushJob, log: FlushableLog) -> None:
        active, end = log.segments.active, log.log_end_offset
        self._checkpointed_size = active.size
        job.add_indexes(active)
        if end not in self.snapshots:
            job.add_snapshot(end, log.producers.packed())
        bases = {segment.base_offset for segment in log.segments}
        loose = [offset for offset in self.snapshots if offset not in bases]
        job.obsolete = [
            f"{log.folder}/{segment_file(offset, SNAPSHOT_SUFFIX)}"
            for offset in loose[: 1 - LOOSE_SNAPSHOTS_KEPT]
        ]

    def on_flushed(self, job: FlushJob, truncations: int, now_ms: int | None) -> None:
        """Record that `job.run` has returned without an error.

        `truncations` is the log's present truncation count.
        """
        is_valid = job.truncations == truncations
        if is_valid:
            self.recovery_point = max(self.recovery_point, job.target_offset)
            if job.target_offset >= self.durable_offset:
                self._note_durable(job.target_offset, job.active_base, job.active_size)
        if job.sync_parent:
            self.has_new_folder = False
        if now_ms is not None:
            self.last_flush_ms = now_ms
        if job.postponed or not is_valid:
            return
        self.has_new_files = self.is_new = False
        if not job.side_files:
            return
        if job.epoch_changes is not None:
            self._epoch_changes_written = job.epoch_changes
        job.note_written()
        self.rolled = [segment for segment in self.rolled if segment not in job.rolled]
        self._rolled_snapshots = [
            kept for kept in self._rolled_snapshots if kept[0] not in job.snapshots
        ]
        removed = {path.rpartition("/")[2] for path in job.obsolete}
        self.snapshots = sorted(
            offset
            for offset in {*self.snapshots, *job.snapshots}
            if segment_file(offset, SNAPSHOT_SUFFIX) not in removed
        )

    def note_complete(self, log: FlushableLog) -> None:
        """Record that the log was opened as a clean stop had left it."""
        if log.log_end_offset in self.snapshots and not self.rolled:
            self._complete_at = log.log_end_offset, log.truncations

    def is_complete(self, log: FlushableLog) -> bool:
        """Whether all files are on the disk, so that a clean stop has nothing to write.

        A leader epoch without records may be missing, as after a crash.
        """
        return log.segments.active.is_unmade or (
            self._complete_at == (log.log_end_offset, log.truncations)
            and not (self.rolled or self.has_new_folder or log.ledger.has_news)
            and not any(segment.has_new_removals for segment in log.segments)
        )

    def check(self) -> None:
        """Raise the DirectoryFailed of the last job, which the log may not have seen yet."""
        if self._last_job is not None and self._last_job.failure is not None:
            raise self._last_job.failure

    def on_rolled(self, closed: Segment, end_offset: int, packed: list[bytes]) -> None:
        """Record that `closed` was rolled; the next segment begins, empty, at `end_offset`.

        `packed` are the producers of the log up to there: see `ProducerStates.packed`.
        """
        self.rolled.append(closed)
        self._rolled_snapshots.append((end_offset, packed))
        self._checkpointed_size = 0

    def on_truncated(self, last: Segment | None) -> None:
        """Record that the log was truncated in `last`; None if all its records were dropped.

        Earlier segments are unchanged.
        """
        self._checkpointed_size = 0
        self._durable_base, self.is_new = -1, False
        base = -1 if last is None else last.base_offset
        self.rolled = [segment for segment in self.rolled if segment.base_offset < base]
        self._rolled_snapshots = [kept for kept in self._rolled_snapshots if kept[0] <= base]
        self.has_new_files = True

    def on_removed(self, segments: list[Segment]) -> None:
        """Forget segments that were removed from the log with their producer snapshots.

        Compaction calls it for each segment that it replaces, too.
        """
        self._complete_at = None
        gone = {segment.base_offset for segment in segments}
        self.rolled = [segment for segment in self.rolled if segment not in segments]
        self.snapshots = [offset for offset in self.snapshots if offset not in gone]
        self._rolled_snapshots = [kept for kept in self._rolled_snapshots if kept[0] not in gone]

    def lower_recovery_point(self, offset: int) -> None:
        """Treat everything from `offset` on as not flushed."""
        self.recovery_point = min(self.recovery_point, offset)
        self.durable_offset = min(self.durable_offset, offset)
        self._durable_base = -1

    def forget_epochs_file(self) -> None:
        """Let the next flush write the leader epoch file, because the epochs were replaced."""
        self._epoch_changes_written = -1
