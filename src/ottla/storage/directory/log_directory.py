"""One log directory: its owner, its lock, its checkpoints, and its logs.

Files at its top, all Kafka's: `meta.properties`, `.lock`, `.kafka_cleanshutdown` (present after a
clean stop), and the three offset checkpoints.
"""

import contextlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial as given
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.record.header import HEADER_SIZE, computed_crc, read_header
from ottla.storage.directory.checkpoints import Checkpoints
from ottla.storage.directory.meta_properties import claim
from ottla.storage.directory.run import CLEAN_SHUTDOWN, Run
from ottla.storage.directory.salvage import open_salvaged
from ottla.storage.directory.trash import KeptLog, Trash
from ottla.storage.disk.errors import (
    StorageError,
    fsync_error,
    full_at_start,
    is_full,
    storage_error,
)
from ottla.storage.disk.filesystem import FileSystem, write_atomically
from ottla.storage.disk.reserve import Ballast, Reserve
from ottla.storage.files import partition_metadata
from ottla.storage.files.checkpoint import CheckpointJob
from ottla.storage.files.names import (
    DELETED_FOLDER_SUFFIX,
    deleted_folder,
    parse_deleted_folder,
    parse_partition_folder,
    stray_folder,
)
from ottla.storage.index.leader_epochs import UNKNOWN_EPOCH
from ottla.storage.log.flush_journal import Entry, FlushJournal
from ottla.storage.log.log import Log
from ottla.storage.log.open_log import begin_log, open_log
from ottla.storage.log.relocation import leave
from ottla.storage.log.truncation import begin_within, end_truncated_to, restart_at, truncate_to
from ottla.storage.segment.config import LogConfig
from ottla.storage.segment.segments import Deletion, Departure

LOCK = ".lock"
# Logs that are flushed at once by a clean stop.
_CLOSING_THREADS = 8
OFFSET_MAX = (1 << 63) - 1


class LogDirectory:
    """One of a broker's log directories."""

    def __init__(
        self,
        filesystem: FileSystem,
        path: str,
        cluster_id: str,
        node_id: int,
        fresh_id: UUID,
        *,
        flushes_first: bool = False,
    ) -> None:
        """Lock and claim the directory, created if it is missing; read its checkpoints.

        `flushes_first` says that nothing is acknowledged here before it is flushed. Raises
        OttlaError if it is in use, or as in `meta_properties.claim`; StorageError if it fails.
        """
        self.filesystem = filesystem
        self.path = path
        self.reserve = Reserve(filesystem, path)
        self.ballast = Ballast(filesystem, path)
        self.logs: dict[TopicPartition, Log] = {}
        # Copies of logs of other directories, on their way here.
        self.futures: dict[TopicPartition, Log] = {}
        # Logs that could not be opened, and why.
        self.refused: dict[TopicPartition, StorageError] = {}
        # Why the directory is offline; empty while it serves.
        self.failure = ""
        try:
            _make_durably(filesystem, path)
            lock = filesystem.lock(f"{path}/{LOCK}")
            if lock is None:
                raise OttlaError(
                    ErrorCode.INVALID_CONFIG,
                    f"{path} is in use by another broker process. Stop that one, or give this "
                    "broker a data directory of its own.",
                )
            self._lock = lock
            try:
                self.directory_id = claim(
                    filesystem, path, cluster_id, node_id, fresh_id
                ).directory_id
                self.checkpoints = Checkpoints(filesystem, path)
                self.trash = Trash(filesystem, path)
                self.run = Run(filesystem, path, flushes_first=flushes_first)
                self.journal = FlushJournal(filesystem, path)
            except BaseException:
                lock.close()
                raise
        except OSError as error:
            if is_full(error):
                raise full_at_start(path) from error
            raise storage_error(error, path, "open the log directory") from error

    def folder_of(self, partition: TopicPartition) -> str:
        return f"{self.path}/{partition}"

    def folders(self) -> dict[TopicPartition, UUID | None]:
        """Return the partitions with a folder here, and the folders' topic ids. StorageError."""
        found = {}
        try:
            for name in self.filesystem.listdir(self.path):
                partition = parse_partition_folder(name)
                if partition is not None and self.filesystem.is_directory(f"{self.path}/{name}"):
                    folder = f"{self.path}/{name}"
                    found[partition] = partition_metadata.read(self.filesystem, folder)
        except OSError as error:
            raise storage_error(error, self.path, "list the logs") from error
        return found

    def leftovers(self) -> list[Deletion]:
        """Return the removals that an earlier run of the broker did not finish."""
        try:
            names = self.filesystem.listdir(self.path)
        except OSError as error:
            raise storage_error(error, self.path, "list the logs") from error
        kept = {one.folder for one in self.trash.logs.values()}
        return [
            Deletion(self.filesystem, [], [], 0, folder=f"{self.path}/{name}")
            for name in names
            if name.endswith(DELETED_FOLDER_SUFFIX) and name not in kept
        ]

    def open_log(
        self,
        partition: TopicPartition,
        topic_id: UUID,
        config: LogConfig,
        *,
        producer_expiration_ms: int,
        unique: UUID,
        now_ms: int,
        salvages: bool = False,
    ) -> Log:
        """Open a partition's log, or begin it if it has no folder. May run in a thread.

        A folder of another topic of that name (deleted and recreated while this broker was down) is
        renamed with the suffix `-stray` and kept. With `salvages` a damaged log is opened without
        its unreadable parts. Raises StorageError.
        """
        folder = self.folder_of(partition)
        filesystem = self.filesystem
        try:
            known = partition_metadata.read(filesystem, folder)
            if known is None and not (
                self.journal.has_begun(partition, topic_id)
                or self.checkpoints.is_promised(partition)
                or filesystem.exists(folder)
            ):
                self.run.note_read(partition)
                self.journal.drop(partition)
                return self._begin_log(partition, topic_id, config, producer_expiration_ms, now_ms)
            damaged_id = None
            if known is not None and partition_metadata.is_damaged(known, topic_id):
                known, damaged_id = None, known
            is_stray = known is not None and known != topic_id
            if is_stray:
                filesystem.rename(folder, f"{self.path}/{stray_folder(partition, unique)}")
            if known != topic_id:
                # Not durable yet, because the log is still empty: its first flush makes this file
                # and the folder's name durable.
                filesystem.mkdir(folder)
                partition_metadata.write(filesystem, folder, topic_id)
        except OSError as error:
            raise storage_error(error, folder, "open the log") from error
        checkpoints, run = self.checkpoints, self.run
        recovery_point = 0 if is_stray else checkpoints.recovery_points.get(partition, 0)
        open_it = given(
            open_log,
            filesystem,
            folder,
            partition,
            config,
            log_start_offset=0 if is_stray else checkpoints.log_starts.get(partition, 0),
            # With group commit no records are truncated in order to copy them from a leader again,
            # because the leader may be this broker.
            is_lossy=not run.kept_all and not run.flushes_first,
            lost_power=run.lost_power and run.flushes_first,
            producer_expiration_ms=producer_expiration_ms,
            now_ms=now_ms,
        )
        clean = run.was_clean and partition in checkpoints.recovery_points and not is_stray
        if salvages:
            log = open_salvaged(filesystem, folder, open_it, recovery_point, clean=clean)
        else:
            log = open_it(recovery_point=recovery_point, clean=clean)
        if damaged_id is not None:
            log.recovery.salvaged.append(
                f"{folder}: partition.metadata named topic {damaged_id} and is written anew"
            )
        # Without a known flush, the folder's name may be in the page cache alone.
        log.flush_state.has_new_folder = known != topic_id or recovery_point == 0
        if clean:
            log.flush_state.note_complete(log)
        _replay_journal(self.journal, log, topic_id, now_ms)
        self.run.note_read(partition)
        self.adopt(log)
        return log

    def _begin_log(
        self,
        partition: TopicPartition,
        topic_id: UUID,
        config: LogConfig,
        producer_expiration_ms: int,
        now_ms: int,
    ) -> Log:
        log = begin_log(
            self.filesystem,
            self.folder_of(partition),
            partition,
            config,
            topic_id,
            producer_expiration_ms=producer_expiration_ms,
            now_ms=now_ms,
        )
        log.flush_state.begin()
        self.adopt(log)
        return log

    def adopt(self, log: Log) -> None:
        """Let the log use this directory's reserve and, with group commit, its flush journal."""
        log.reserve = self.reserve
        if self.run.flushes_first and not self.filesystem.in_memory:
            log.journal = self.journal

    def take_out(
        self, partition: TopicPartition, unique: UUID, keep: UUID | None = None
    ) -> Departure:
        """Remove a log, whether it is open or not; its folder is renamed after this.

        If it belongs to the topic with the id `keep`, it goes to the trash. Raises StorageError.
        """
        log = self.logs.get(partition)
        if log is not None:
            departure = leave(log, unique)
        else:
            target = f"{self.path}/{deleted_folder(partition, unique)}"
            departure = Departure(self.filesystem, self.folder_of(partition), target, [], 0)
        if keep is not None:
            departure = self._kept(partition, log, keep, departure)
        self.run.note_read(partition)
        self.journal.drop(partition)
        for known in (self.logs, self.refused):
            known.pop(partition, None)
        self.checkpoints.let_go(partition)
        self.forget(partition)
        return departure

    def _kept(
        self, partition: TopicPartition, log: Log | None, topic_id: UUID, departure: Departure
    ) -> Departure:
        """Enter a log in the trash, unless its records cannot be known to be there."""
        filesystem, folder, has_folder = self.filesystem, departure.folder, departure.has_folder
        try:
            if log is not None:
                recovery_point, start = log.flush_state.recovery_point, log.log_start_offset
                size = log.size_bytes
            else:
                # After a power cut, records may be in the flush journal alone.
                has_journal = self.run.lost_power and partition in self.journal.pending
                if has_journal or partition_metadata.read(filesystem, folder) != topic_id:
                    return departure
                recovery_point = self.checkpoints.recovery_points.get(partition, 0)
                start = self.checkpoints.log_starts.get(partition, 0)
                files = [f"{folder}/{name}" for name in filesystem.listdir(folder)]
                size = sum(filesystem.size(path) for path in files)
        except OSError as error:
            raise storage_error(error, folder, "delete the log") from error
        name = departure.target.rpartition("/")[2] if has_folder else ""
        kept = KeptLog(*partition, topic_id, name, recovery_point, start, size if has_folder else 0)
        self.trash.logs[kept.key] = kept
        return replace(departure, kept=kept.key)

    def restore(self, logs: Sequence[KeptLog]) -> dict[TopicPartition, StorageError]:
        """Take logs out of the trash, durably, before they are opened; return the errors."""
        filesystem, checkpoints = self.filesystem, self.checkpoints
        failed: dict[TopicPartition, StorageError] = {}
        for kept in logs:
            source, target = f"{self.path}/{kept.folder}", self.folder_of(kept.name)
            if kept.folder and (not filesystem.exists(source) or filesystem.exists(target)):
                failed[kept.name] = StorageError(
                    f"{source}, the log of a deleted topic, cannot become {target}: it is missing, "
                    "or another log has that name; move that away, or reassign the partition"
                )
                continue
            checkpoints.recovery_points[kept.name] = kept.recovery_point
            if kept.log_start:
                checkpoints.log_starts[kept.name] = kept.log_start
        found = [kept for kept in logs if kept.name not in failed]
        try:
            # Before the renames: a crash must not leave a log without its start offset.
            checkpoints.prepare_values().run()
            for kept in found:
                if kept.folder:
                    filesystem.rename(f"{self.path}/{kept.folder}", self.folder_of(kept.name))
            filesystem.fsync_directory(self.path)
            for kept in found:
                del self.trash.logs[kept.key]
            self.trash.write()
        except OSError as error:
            problem = storage_error(error, self.path, "restore deleted logs")
            failed |= {kept.name: problem for kept in found}
        return failed

    def forget(self, partition: TopicPartition) -> None:
        """Leave the partition out of the checkpoints: see `Checkpoints.forget`."""
        self.checkpoints.forget(partition, self.folder_of(partition))

    def elsewhere(self, homes: Mapping[TopicPartition, object]) -> list[TopicPartition]:
        """Return the partitions with checkpointed values but no folder, if it is known why.

        The log is in another directory (a move, or a second copy was set aside), or was deleted
        while the disk had no room for a checkpoint. Raises OSError.
        """
        without = [one for one in self.checkpoints.partitions if homes.get(one) is not self]
        if not without:
            return []
        names = self.filesystem.listdir(self.path)
        deleted = set(map(parse_deleted_folder, names))
        return [one for one in without if one in homes or one in deleted]

    def truncate(self, partition: TopicPartition, offset: int, now_ms: int) -> list[Deletion]:
        """Truncate an open log. Raises StorageError.

        If its checkpoint on the disk is too high, that is lowered first, in this thread
        (`Checkpoints.hold_down`): a crash in between must not find a log that ends before its
        recovery point.
        """
        log = self.logs[partition]
        offset = end_truncated_to(log, offset)
        log.flush_state.lower_recovery_point(offset)
        self.checkpoints.lower_cleaned(partition, offset)
        self._lower_checkpoint(partition, offset)
        return truncate_to(log, offset, now_ms)

    def restart(self, partition: TopicPartition, offset: int, now_ms: int) -> list[Deletion]:
        """Drop all records of an open log and start it at `offset`; otherwise like `truncate`."""
        log = self.logs[partition]
        least = min(log.log_start_offset, offset)
        log.flush_state.lower_recovery_point(least)
        self.checkpoints.cleaned.pop(partition, None)
        self._lower_checkpoint(partition, least)
        return restart_at(log, offset, now_ms)

    def _lower_checkpoint(self, partition: TopicPartition, offset: int) -> None:
        """Lower the checkpoint on the disk to `offset` at most. Raises StorageError."""
        checkpoints = self.checkpoints
        if not checkpoints.is_low(partition, offset):
            checkpoints.hold_down(partition, offset)
            self.prepare_checkpoints({}).run()
            checkpoints.note_lowered([partition])
            checkpoints.let_go(partition)

    def sync(self) -> None:
        """Make the names in the directory durable. In any thread. Raises DirectoryFailed."""
        try:
            self.filesystem.fsync_directory(self.path)
        except OSError as error:
            raise fsync_error(error, self.path) from error

    def prepare_checkpoints(self, high_watermarks: Mapping[TopicPartition, int]) -> CheckpointJob:
        """Gather the checkpoints' values for the open logs."""
        job = self.checkpoints.prepare(self.logs, high_watermarks)
        job.files.update(self.run.due_files())
        return job

    def fail(self, reason: str) -> None:
        """Go offline; requests for logs here get KAFKA_STORAGE_ERROR."""
        self.failure = self.failure or reason
        for log in (*self.logs.values(), *self.futures.values()):
            log.offline = log.offline or reason

    def close_logs(self, *, clean: bool, now_ms: int | None) -> list[StorageError]:
        """Close all logs, several at a time: the disk flushes them together. Return the errors."""
        logs = [*self.logs.values(), *self.futures.values()]
        if clean and any(log.flush_state.has_new_folder for log in logs):
            # If this fails, each log tries it again, and returns the error.
            with contextlib.suppress(OSError):
                self.filesystem.fsync_directory(self.path)
                for log in logs:
                    log.flush_state.parent_is_synced = True

        def close(log: Log) -> StorageError | None:
            try:
                log.close(clean=clean, now_ms=now_ms)
            except StorageError as error:
                return error
            return None

        if len(logs) < 2 or not clean or not self.filesystem.is_concurrent:
            found = [close(log) for log in logs]
        else:
            with ThreadPoolExecutor(_CLOSING_THREADS, "ottla-close") as pool:
                found = list(pool.map(close, logs))
        return [error for error in found if error is not None]

    def close(self, high_watermarks: Mapping[TopicPartition, int], *, clean: bool) -> None:
        """Unlock after the logs were closed; write the clean-shutdown marker if all succeeded.

        Raises StorageError, with the directory closed uncleanly.
        """
        try:
            self.journal.close(clean=clean and not self.failure and not self.refused)
            job = self.prepare_checkpoints(high_watermarks)
            if clean and not self.failure:
                job.run()
                # A log that was not opened since a loss of power still needs its recovery.
                if not self.refused and not self.run.has_unread:
                    content = b'{"version":0,"brokerEpoch":-1}'
                    write_atomically(self.filesystem, f"{self.path}/{CLEAN_SHUTDOWN}", content)
        except OSError as error:
            raise storage_error(error, self.path, "close the log directory") from error
        finally:
            self._lock.close()


def _make_durably(filesystem: FileSystem, path: str) -> None:
    """Make a directory and its missing parents so that they survive a power cut."""
    missing = []
    ancestor = path
    while ancestor and not filesystem.exists(ancestor):
        missing.append(ancestor)
        ancestor = ancestor.rpartition("/")[0]
    filesystem.mkdir(path)
    for made in reversed(missing):
        parent, _, _ = made.rpartition("/")
        filesystem.fsync_directory(parent or ("/" if made.startswith("/") else "."))


def _replay_journal(journal: FlushJournal, log: Log, topic_id: UUID, now_ms: int) -> None:
    """Append the journal's batches to a log that was just opened, and flush the log.

    Raises StorageError; the journal then keeps its entries.
    """
    entries = journal.entries(log.topic_partition)
    if entries is None:
        return
    entries = [entry for entry in entries if entry.topic_id == topic_id]
    before, log_start = log.log_end_offset, log.log_start_offset
    for number, entry in enumerate(entries):
        # A later entry that begins below the end of this one shows that the log was truncated.
        valid_end = min((later.start_offset for later in entries[number + 1 :]), default=OFFSET_MAX)
        _append_missing(log, entry, valid_end, now_ms)
    log.advance_log_start(min(log_start, log.log_end_offset))
    end = log.log_end_offset
    if end != before:
        log.recovery.notes.append(
            f"{log.folder}: ended at offset {before}, continued to {end} by the flush journal"
        )
    log.recovery.notes += journal.damage
    if log.flush_state.recovery_point < end:
        log.flush(now_ms)
    journal.drop(log.topic_partition)


def _append_missing(log: Log, entry: Entry, valid_end: int, now_ms: int) -> None:
    """Append the batches below `valid_end` that the log lacks.

    An entry is of an earlier state of the log if the log has other batches at its offsets: as
    between replicas, batches are the same if offset and leader epoch are. Nothing of the entry is
    used from there on.
    """
    view = memoryview(entry.batches)
    position, expected = 0, entry.start_offset
    while position + HEADER_SIZE <= len(view):
        header = read_header(view, position)
        end = position + header.size
        if end > len(view) or computed_crc(view, position, header.size) != header.crc:
            return  # The log was truncated while its end was copied; this was not acknowledged.
        if header.last_offset >= valid_end:
            return
        if header.last_offset < log.log_end_offset:
            present = log.leader_epochs.epoch_of(header.last_offset)
            if present not in (UNKNOWN_EPOCH, header.leader_epoch):
                return
        else:
            for deletion in begin_within(log, view[position:end], now_ms):
                deletion.run()
            # Offsets that compaction has removed may be missing before a batch.
            is_next = expected <= log.log_end_offset <= header.base_offset
            if not is_next or header.leader_epoch < log.leader_epochs.latest:
                return
            log.append_as_follower(view[position:end], now_ms)
        expected = header.last_offset + 1
        position = end
