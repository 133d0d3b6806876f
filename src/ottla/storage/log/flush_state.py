"""Tracks which part of a log is on the disk, and what its next flush must write.

A flush is prepared on the loop, runs in a thread, and is noted on the loop again.
"""

from typing import Protocol

from ottla.storage.disk.filesystem import FileSystem
from ottla.storage.files.names import LEADER_EPOCHS, SNAPSHOT_SUFFIX, segment_file
from ottla.storage.files.offset_ledger import OffsetLedger
from ottla.storage.index.leader_epochs import LeaderEpochs
from ottla.storage.log.flush import FlushJob, SideFile
from ottla.storage.producers import snapshot as producer_snapshot
from ottla.storage.producers.state import ProducerStates
from ottla.storage.segment.segment import Segment
from ottla.storage.segment.segments import Segments

# Snapshots that stand at no segment's beginning: the newest, and the one the last recovery
# point checkpoint may need.
LOOSE_SNAPSHOTS_KEPT = 2
# How much recovery may have to read of one log, at most about.
CHECKPOINT_BYTES = 64 << 20


class FlushableLog(Protocol):
    """The interface of a log for a flush."""

    filesystem: FileSystem
    folder: str
    segments: Segments
    leader_epochs: LeaderEpochs
    producers: ProducerStates
    ledger: OffsetLedger
    log_end_offset: int
    truncations: int


class FlushState:
    """The flush state of one log."""

    __slots__ = (
        "_checkpointed_size",
        "_epoch_changes_written",
        "_last_job",
        "_rolled_snapshots",
        "has_new_files",
        "has_new_folder",
        "last_flush_ms",
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
        # All records below are on the disk.
        self.recovery_point = recovery_point
        self.last_flush_ms = now_ms
        # Closed segments that may not be on the disk yet: after recovery, those it had to read.
        self.rolled = rolled
        # Producer snapshots taken when those were closed, as (offset, bytes).
        self._rolled_snapshots: list[tuple[int, bytes]] = []
        # Offsets of the producer snapshots on the disk, sorted.
        self.snapshots = snapshots
        # Size of the active segment when its indexes and a producer snapshot were last written.
        self._checkpointed_size = checkpointed_size
        # The state of the leader epochs that their file has; -1 for unknown.
        self._epoch_changes_written = -1
        # Whether the folder has names that may not be on the disk yet.
        self.has_new_files = True
        # Whether the folder's own name may not be; the first flush makes it durable.
        self.has_new_folder = False
        self._last_job: FlushJob | None = None

    def prepare(self, log: FlushableLog, *, checkpoint: bool) -> FlushJob:
        """Gather what makes all that is appended to `log` by now durable."""
        active, end = log.segments.active, log.log_end_offset
        grown_bytes = active.size - self._checkpointed_size
        job = FlushJob(log.filesystem, log.folder, end, [], log.truncations)
        job.epoch_changes = log.leader_epochs.changes
        job.rolled = list(self.rolled)
        job.sync_folder = self.has_new_files or self.has_new_folder or bool(job.rolled)
        job.sync_parent = self.has_new_folder
        for segment in job.rolled:
            job.files.append(segment.file)
            job.add_indexes(segment)
            job.add_removals(segment)
        job.add_removals(active)
        job.ledger = log.ledger.job(log.filesystem, log.folder)
        for offset, snapshot in self._rolled_snapshots:
            job.add_snapshot(offset, snapshot)
        if self.recovery_point < end or job.sync_folder:
            job.files.append(active.file)
            active.remember(end, active.size)
        if job.epoch_changes != self._epoch_changes_written:
            path = f"{log.folder}/{LEADER_EPOCHS}"
            job.side_files.append(SideFile(path, log.leader_epochs.encode(), whole=True))
        if (
            checkpoint
            or grown_bytes >= CHECKPOINT_BYTES
            # Recovery concludes from a snapshot that what lies before it was flushed.
            or len(job.rolled) > len(self._rolled_snapshots)
        ):
            self._add_checkpoint(job, log)
        self._last_job = job
        return job

    def _add_checkpoint(self, job: FlushJob, log: FlushableLog) -> None:
        active, end = log.segments.active, log.log_end_offset
        self._checkpointed_size = active.size
        job.add_indexes(active)
        if end not in self.snapshots:
            job.add_snapshot(end, producer_snapshot.encode(log.producers.entries.values()))
        bases = {segment.base_offset for segment in log.segments}
        loose = [offset for offset in self.snapshots if offset not in bases]
        job.obsolete = [
            f"{log.folder}/{segment_file(offset, SNAPSHOT_SUFFIX)}"
            for offset in loose[: 1 - LOOSE_SNAPSHOTS_KEPT]
        ]

    def on_flushed(self, job: FlushJob, truncations: int, now_ms: int | None) -> None:
        """Take note that `job.run` has returned without an error.

        `truncations`: of the log by now.
        """
        is_valid = job.truncations == truncations
        if is_valid:
            self.recovery_point = max(self.recovery_point, job.target_offset)
        if job.sync_parent:
            self.has_new_folder = False
        if now_ms is not None:
            self.last_flush_ms = now_ms
        if job.postponed or not is_valid:
            return
        self.has_new_files = False
        if not job.side_files:
            return
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

    def check(self) -> None:
        """Raise the DirectoryFailed of the last job, which the log may not have seen yet."""
        if self._last_job is not None and self._last_job.failure is not None:
            raise self._last_job.failure

    def on_rolled(self, closed: Segment, end_offset: int, snapshot: bytes) -> None:
        """A segment was closed, and the next one begins, empty, at `end_offset`."""
        self.rolled.append(closed)
        self._rolled_snapshots.append((end_offset, snapshot))
        self._checkpointed_size = 0

    def on_truncated(self, last: Segment | None) -> None:
        """The log was truncated in `last`, None for all: what lies before it is as it was."""
        self._checkpointed_size = 0
        base = -1 if last is None else last.base_offset
        self.rolled = [segment for segment in self.rolled if segment.base_offset < base]
        self._rolled_snapshots = [kept for kept in self._rolled_snapshots if kept[0] <= base]
        self.has_new_files = True

    def on_removed(self, segments: list[Segment]) -> None:
        """Segments were taken out of the log with their producer snapshots."""
        gone = {segment.base_offset for segment in segments}
        self.rolled = [segment for segment in self.rolled if segment not in segments]
        self.snapshots = [offset for offset in self.snapshots if offset not in gone]
        self._rolled_snapshots = [kept for kept in self._rolled_snapshots if kept[0] not in gone]

    def lower_recovery_point(self, offset: int) -> None:
        """Treat everything from `offset` on as not flushed."""
        self.recovery_point = min(self.recovery_point, offset)

    def forget_epochs_file(self) -> None:
        """The log has other leader epochs: their file is written with the next flush."""
        self._epoch_changes_written = -1
