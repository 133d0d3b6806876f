"""A log that can be flushed: what is due is gathered on the loop, a thread makes it durable."""

from ottla.storage.directory.names import LEADER_EPOCHS, SNAPSHOT_SUFFIX, segment_file
from ottla.storage.log.append_log import AppendLog
from ottla.storage.log.flush import FlushJob, SideFile
from ottla.storage.producers import snapshot as producer_snapshot

# Snapshots that stand at no segment's beginning: the newest, and the one the last recovery
# point checkpoint may need.
LOOSE_SNAPSHOTS_KEPT = 2
# How much recovery may have to read of one log, at most about.
CHECKPOINT_BYTES = 64 << 20


class FlushedLog(AppendLog):
    """Keeps count of what is on the disk and what is not."""

    # Counts truncations, which make the target of a flush under way void.
    truncations = 0
    # The state of `leader_epochs` that its file has; -1 for unknown.
    epoch_changes_written = -1
    # Whether the folder has names that may not be on the disk yet.
    has_new_files = True
    # Whether the folder's own name may not be; the first flush makes it durable.
    has_new_folder = False
    _last_job: FlushJob | None = None

    @property
    def needs_flush(self) -> bool:
        """Whether the log should be flushed soon, whoever waits for it or not.

        So it is when a segment was closed, and when recovery would have much to read.
        """
        return bool(self.rolled) or self.active.size - self.checkpointed_size >= CHECKPOINT_BYTES

    def prepare_flush(self, *, checkpoint: bool = False) -> FlushJob:
        """Gather what makes all that is appended by now durable.

        With `checkpoint`, and by itself every CHECKPOINT_BYTES, also the active segment's
        indexes and a producer snapshot, so that a recovery from this point reads nothing that
        lies before it. At most one job of a log at a time; hand it to `on_flushed` when `run`
        has returned. Raises StorageError.
        """
        self.make()
        job = FlushJob(self.filesystem, self.folder, self.log_end_offset, [], self.truncations)
        job.epoch_changes = self.leader_epochs.changes
        job.rolled = list(self.rolled)
        job.sync_folder = self.has_new_files or self.has_new_folder or bool(job.rolled)
        job.sync_parent = self.has_new_folder
        for segment in job.rolled:
            job.files.append(segment.file)
            job.add_indexes(segment, also_transactions=True)
            job.add_removals(segment)
        job.add_removals(self.active)
        job.ledger = self.ledger.job(self.filesystem, self.folder)
        for offset, snapshot in self.rolled_snapshots:
            self._add_snapshot(job, offset, snapshot)
        if self.recovery_point < self.log_end_offset or job.sync_folder:
            job.files.append(self.active.file)
            self.active.remember(self.log_end_offset, self.active.size)
        if job.epoch_changes != self.epoch_changes_written:
            path = f"{self.folder}/{LEADER_EPOCHS}"
            job.side_files.append(SideFile(path, self.leader_epochs.encode(), whole=True))
        if (
            checkpoint
            or self.active.size - self.checkpointed_size >= CHECKPOINT_BYTES
            # Recovery concludes from a snapshot that what lies before it was flushed.
            or len(job.rolled) > len(self.rolled_snapshots)
        ):
            self._add_checkpoint(job)
        self._last_job = job
        return job

    def _add_checkpoint(self, job: FlushJob) -> None:
        self.checkpointed_size = self.active.size
        job.add_indexes(self.active, also_transactions=True)
        if self.log_end_offset not in self.snapshots:
            snapshot = producer_snapshot.encode(self.producers.entries.values())
            self._add_snapshot(job, self.log_end_offset, snapshot)
        bases = {segment.base_offset for segment in self.segments}
        loose = [offset for offset in self.snapshots if offset not in bases]
        job.obsolete = [
            f"{self.folder}/{segment_file(offset, SNAPSHOT_SUFFIX)}"
            for offset in loose[: 1 - LOOSE_SNAPSHOTS_KEPT]
        ]

    def _add_snapshot(self, job: FlushJob, offset: int, snapshot: bytes) -> None:
        path = f"{self.folder}/{segment_file(offset, SNAPSHOT_SUFFIX)}"
        job.side_files.append(SideFile(path, snapshot, whole=True))
        job.snapshots.append(offset)

    def on_flushed(self, job: FlushJob, now_ms: int | None = None) -> None:
        """Take note that `job.run` has returned without an error."""
        if job.truncations == self.truncations:
            self.recovery_point = max(self.recovery_point, job.target_offset)
        self.unflushed_records = self.log_end_offset - self.recovery_point
        if job.sync_parent:
            self.has_new_folder = False
        if now_ms is not None:
            self.last_flush_ms = now_ms
        if job.postponed or job.truncations != self.truncations:
            return
        self.has_new_files = False
        if not job.side_files:
            return
        self.epoch_changes_written = job.epoch_changes
        for segment, changes in job.removals:
            segment.removals_written = changes
        for written in job.indexes:
            written.segment.offsets_written = written.offsets
            written.segment.times_written = written.times
        self.rolled = [segment for segment in self.rolled if segment not in job.rolled]
        self.rolled_snapshots = [
            kept for kept in self.rolled_snapshots if kept[0] not in job.snapshots
        ]
        removed = {path.rpartition("/")[2] for path in job.obsolete}
        self.snapshots = sorted(
            offset
            for offset in {*self.snapshots, *job.snapshots}
            if segment_file(offset, SNAPSHOT_SUFFIX) not in removed
        )

    def flush(self, now_ms: int | None = None, *, checkpoint: bool = False) -> None:
        """Flush at once, in this thread. Raises StorageError."""
        if self._last_job is not None and self._last_job.failure is not None:
            # The job has failed in its thread, and nobody has told the log yet.
            raise self._last_job.failure
        job = self.prepare_flush(checkpoint=checkpoint)
        job.run()
        self.on_flushed(job, now_ms)
