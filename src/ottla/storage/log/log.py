"""A partition's log with its upkeep: retention, truncation, and answers about the past.

One thread owns a log. What may block for long (flushing, removing files) is handed out as jobs.
"""

from collections.abc import Iterator
from typing import Protocol
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.ledger.history import Cause
from ottla.record.header import HEADER_SIZE, read_header
from ottla.storage.directory.deletion import Deletion, Departure, set_aside
from ottla.storage.directory.names import SNAPSHOT_SUFFIX, deleted_folder, segment_file
from ottla.storage.disk.errors import storage_error
from ottla.storage.disk.filesystem import Buffer
from ottla.storage.index.leader_epochs import UNKNOWN_EPOCH
from ottla.storage.index.transaction_index import AbortedTransaction
from ottla.storage.ledger.offset_ledger import OffsetLedger
from ottla.storage.log import timestamps
from ottla.storage.log.answers import Appended, Slice
from ottla.storage.log.batch_walk import BadHeader
from ottla.storage.log.config import LogConfig
from ottla.storage.log.copied_gaps import recount_cut
from ottla.storage.log.flush import FlushJob
from ottla.storage.log.flushed_log import FlushedLog
from ottla.storage.log.replay import rebuild_producers
from ottla.storage.log.retention import Verdict, deletable
from ottla.storage.log.timestamps import TimestampOffset
from ottla.storage.producers.state import ProducerEntry
from ottla.storage.recovery.readable import Damage, ReadableSegment, Whole, readable_segment
from ottla.storage.segment.segment import Segment

__all__ = ["Appended", "FlushJob", "Log", "Slice", "TimestampOffset"]


class Replacement(Protocol):
    """Segments that are about to take the place of others."""

    def settle(self) -> None:
        """The log's files are about to change: nothing else may change them after this.

        What the log does not read yet must not come into it, now or after a crash; what it does is
        put in place. Raises StorageError.
        """
        ...


class Log(FlushedLog):
    """One partition's log on this broker."""

    # Of compaction, from before its announcement on the disk until all is in place.
    replacement: Replacement | None = None

    def old_segments(self, now_ms: int, high_watermark: int) -> Verdict:
        """Which segments retention lets go. Raises StorageError."""
        try:
            return deletable(
                self.segments.as_list(),
                self.config,
                now_ms=now_ms,
                high_watermark=high_watermark,
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end_offset,
            )
        except OSError as error:
            raise storage_error(error, self.folder, "look for old segments") from error

    def delete_old_segments(
        self, now_ms: int, high_watermark: int, verdict: Verdict | None = None
    ) -> list[Deletion]:
        """Take segments out of the log that retention lets go; run the jobs after their delay.

        `verdict`: of `old_segments`, where it was asked before. What goes is noted in the ledger,
        which should be on the disk before: see `note_old_segments`. Raises StorageError.
        """
        verdict = verdict or self.old_segments(now_ms, high_watermark)
        count = verdict.count
        if not count:
            return []
        self.note_old_segments(verdict, now_ms)
        if count == len(self.segments):
            self.roll(now_ms)
        removed = self.segments.remove_first(count)
        self.rolled = [segment for segment in self.rolled if segment not in removed]
        first = self.segments.first.base_offset
        if first > self.log_start_offset:
            self.advance_log_start(first)
        return [self._set_aside(removed)]

    def note_old_segments(self, verdict: Verdict, now_ms: int) -> None:
        """Say in the ledger which segments go for which reason, those below the start apart."""
        if not verdict.count:
            return
        segments, history = self.segments.as_list(), self.ledger.history
        bounds = [segment.base_offset for segment in segments[1:]] + [self.log_end_offset]
        start, end = self.log_start_offset, bounds[verdict.count - 1]
        aged = bounds[verdict.by_age - 1] if verdict.by_age else start
        history.delete(start, min(aged, end), Cause.RETENTION_TIME, now_ms)
        history.delete(max(start, aged), end, Cause.RETENTION_BYTES, now_ms)

    def _set_aside(self, removed: list[Segment]) -> Deletion:
        self._settle_replacement()
        gone = {segment.base_offset for segment in removed}
        self.snapshots = [offset for offset in self.snapshots if offset not in gone]
        self.rolled_snapshots = [kept for kept in self.rolled_snapshots if kept[0] not in gone]
        try:
            return set_aside(self.filesystem, removed, self.config.file_delete_delay_ms)
        except OSError as error:
            raise storage_error(error, self.folder, "set segments aside") from error

    def advance_log_start(self, offset: int, cause: Cause | None = None, now_ms: int = -1) -> None:
        """Make `offset` the first readable one; lower ones than the present are ignored.

        `cause` and `now_ms` are noted in the ledger; None where it knows already.
        Raises OttlaError: OFFSET_OUT_OF_RANGE above the log end offset.
        """
        if offset > self.log_end_offset:
            raise OttlaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition}: cannot delete records up to offset {offset}, "
                f"the log ends at {self.log_end_offset}",
            )
        if offset > self.log_start_offset:
            if cause is not None:
                self._note_start(self.log_start_offset, offset, cause, now_ms)
            self.log_start_offset = offset
            self.leader_epochs.truncate_from_start(offset)

    def _note_start(self, start: int, offset: int, cause: Cause, now_ms: int) -> None:
        """What lies in [start, offset) goes; where only the leader knows why, it may have said."""
        history = self.ledger.history
        if cause in (Cause.LEADER, Cause.WHOLE):
            history.fill(start, offset, cause, now_ms)
        else:
            history.delete(start, offset, cause, now_ms)

    def begin_epoch(self, leader_epoch: int) -> None:
        """Note that a leader's term begins at the log's end; it may stay without records."""
        self.leader_epochs.assign(leader_epoch, self.log_end_offset)
        self._active_epoch = self.leader_epochs.latest

    def cut_end(self, offset: int) -> int:
        """Where the log would end, cut at `offset`. Raises StorageError.

        A batch that holds it goes as a whole. A gap is no end: nothing would tell after a restart
        that the log reached into it.
        """
        if not self.log_start_offset <= offset < self.log_end_offset:
            return offset
        segment = self.segments[self.segments.floor(offset)]
        try:
            end = segment.end_before(segment.position_of(offset))
        except BadHeader as bad:
            raise segment.corrupt(bad) from None
        except OSError as error:
            raise storage_error(error, segment.path(), "look for the end of a cut") from error
        return max(self.log_start_offset, end)

    def truncate_to(self, offset: int, now_ms: int) -> list[Deletion]:
        """Drop everything at and above `offset`: a follower's end that the leader does not have.

        It ends at `cut_end` then. What the recovery point checkpoint says of this log must be
        lowered to that before (`LogDirectories.truncate` does).
        Returns the removal of whole segments. Raises StorageError.
        """
        if offset >= self.log_end_offset:
            return []
        if offset < self.log_start_offset:
            return self.restart_at(offset, now_ms)
        keep = self.segments.floor(offset) + 1
        removed = self.segments.remove_after(keep)
        self._forget_flushes(self.segments.last)
        deletions = [self._set_aside(removed)] if removed else []
        self.active = active = self.segments.last
        try:
            position = active.position_of(offset)
            offset = max(self.log_start_offset, active.end_before(position))
            if not active.loaded:
                active.load_indexes()
            active.truncate(position, offset)
            recount_cut(active, offset)
        except BadHeader as bad:
            raise active.corrupt(bad) from None
        except OSError as error:
            raise storage_error(error, active.path(), "truncate") from error
        self._end_at(offset)
        self._reload_producers(now_ms)
        return deletions

    def restart_at(self, offset: int, now_ms: int) -> list[Deletion]:
        """Drop all records and go on, empty, at `offset`. Raises StorageError."""
        self.make()
        self._note_start(0, offset, Cause.WHOLE, now_ms)
        self._forget_flushes(None)
        removed = self.segments.as_list()
        deletion = self._set_aside(removed)
        segment = Segment(self.filesystem, self.folder, offset, self.config, now_ms)
        try:
            segment.create()
        except OSError as error:
            raise storage_error(error, segment.path(), "begin a new segment") from error
        self.segments.replace(segment)
        self.active = segment
        self.log_start_offset = offset
        self.leader_epochs.clear()
        self._end_at(offset)
        self._reload_producers(now_ms)
        return [deletion]

    def begin_within(self, records: Buffer, now_ms: int) -> list[Deletion]:
        """Let an empty log begin at its first batch, where its start lies inside of that batch.

        So it is with a copy of a log whose records were deleted up to the middle of a batch.
        `records` are about to be appended. Raises StorageError.
        """
        end = self.log_end_offset
        if end != self.log_start_offset or len(records) < HEADER_SIZE:
            return []
        header = read_header(records)
        if not header.base_offset < end <= header.last_offset:
            return []
        # What lies below the start is known to be gone, and stays so.
        return self.restart_at(header.base_offset, now_ms)

    def take_over(self, other: "Log") -> None:
        """Know what `other` knows, a log with the same records and perhaps a longer memory."""
        assert self.log_end_offset == other.log_end_offset
        self.config = other.config
        self.producers = other.producers
        self.leader_epochs = other.leader_epochs
        self._active_epoch = self.leader_epochs.latest
        self.epoch_changes_written = -1
        self.log_start_offset = max(self.log_start_offset, other.log_start_offset)
        self.ledger = OffsetLedger(other.ledger.history.copy(), is_written=False)

    def rename(self, folder: str) -> None:
        """Give the log's folder another name, durably, in the same directory. StorageError."""
        self.make()
        parent = folder.rpartition("/")[0]
        self._settle_replacement()
        try:
            self.filesystem.rename(self.folder, folder)
            self.filesystem.fsync_directory(parent)
        except OSError as error:
            raise storage_error(error, self.folder, "rename the log") from error
        self.folder = folder
        for segment in self.segments:
            segment.folder = folder

    def _settle_replacement(self) -> None:
        if self.replacement is not None:
            self.replacement.settle()

    def _forget_flushes(self, last: Segment | None) -> None:
        """A cut leaves the segments up to `last`: those before it are flushed as before."""
        self._settle_replacement()
        self.truncations += 1
        self.checkpointed_size = 0
        base = -1 if last is None else last.base_offset
        self.rolled = [segment for segment in self.rolled if segment.base_offset < base]
        self.rolled_snapshots = [kept for kept in self.rolled_snapshots if kept[0] <= base]
        self.has_new_files = True

    def _end_at(self, offset: int) -> None:
        self.log_end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self.unflushed_records = offset - self.recovery_point
        self.leader_epochs.truncate_from_end(offset)
        self._active_epoch = self.leader_epochs.latest

    def _reload_producers(self, now_ms: int) -> None:
        end = self.log_end_offset
        try:
            for offset in [snapshot for snapshot in self.snapshots if snapshot > end]:
                self.filesystem.unlink(f"{self.folder}/{segment_file(offset, SNAPSHOT_SUFFIX)}")
                self.snapshots.remove(offset)
            rebuild_producers(
                self.filesystem,
                self.folder,
                self.segments.as_list(),
                self.snapshots,
                self.producers,
                end,
                now_ms,
            )
        except OSError as error:
            raise storage_error(error, self.folder, "read the producers' state again") from error

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record at or after `timestamp` ms; None where there is none.

        Raises StorageError.
        """
        return timestamps.first_at_or_after(
            self.segments.as_list(), timestamp, self.log_start_offset, self.leader_epochs
        )

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record that has the log's greatest timestamp; None for an empty log."""
        return timestamps.greatest(
            self.segments.as_list(), self.log_start_offset, self.leader_epochs
        )

    @property
    def first_epoch(self) -> int:
        """The earliest term known, -1 for none: of older ones nothing can be compared."""
        return self.leader_epochs.epochs[0] if self.leader_epochs.epochs else UNKNOWN_EPOCH

    @property
    def last_epoch(self) -> int:
        """The term of the last record, -1 where there is none; a term without records has none."""
        if self.log_end_offset == self.log_start_offset:
            return UNKNOWN_EPOCH
        return self.leader_epochs.epoch_of(self.log_end_offset - 1)

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """(epoch, offset at which it ended) as KIP-101 and KIP-279 want it; (-1, -1) unknown."""
        return self.leader_epochs.end_offset(leader_epoch, self.log_end_offset)

    def describe_producers(self) -> list[ProducerEntry]:
        """Producers that are remembered, by id."""
        return [entry for _, entry in sorted(self.producers.entries.items())]

    def expire_producers(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers that were silent for `expiration_ms`, and hold no transaction."""
        self.producers.expire(now_ms, expiration_ms)

    def last_stable_offset(self, high_watermark: int) -> int:
        """Below it no transaction is undecided; between log start and `high_watermark`."""
        producers = self.producers
        if not producers.open_transactions and not producers.unreplicated:
            return high_watermark
        producers.on_high_watermark(high_watermark)
        unstable = producers.first_unstable_offset()
        if unstable is None:
            return high_watermark
        # Records of an open transaction may have been deleted.
        return min(max(unstable, self.log_start_offset), high_watermark)

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """Aborted transactions with records in [start, end), for readers of committed records."""
        found: list[AbortedTransaction] = []
        for number in range(self.segments.floor(start), len(self.segments)):
            entries, is_complete = self.segments[number].transactions.overlapping(start, end)
            found += entries
            if is_complete:
                break
        return found

    def update_config(self, config: LogConfig) -> None:
        """Use other settings from now on; index sizes hold from the next segment on."""
        self.config = config
        for segment in self.segments:
            segment.config = config

    def readable(self, window_bytes: int) -> Iterator[list[Whole | Damage]]:
        """What can be read of the log as it stands now, in order, about `window_bytes` at a time.

        Damage does not end it. Each step may run in a thread. Raises StorageError.
        """
        start, end = self.log_start_offset, self.log_end_offset
        offset = start
        reading: ReadableSegment | None = None
        current: Segment | None = None
        while offset < end and not self.offline:
            number = self.segments.floor(offset)
            segment = self.segments[number]
            is_last = number + 1 == len(self.segments)
            limit = end if is_last else self.segments[number + 1].base_offset
            try:
                if reading is None or segment is not current:
                    # Begun, or begun again since compaction has replaced the segment.
                    current, reading = segment, readable_segment(segment, start, limit)
                found = [] if reading.is_done else list(reading.read(window_bytes))
            except OSError as error:
                raise storage_error(error, segment.path(), "read") from error
            yield [
                each
                for each in found
                if isinstance(each, Damage) or each.is_repaired or each.header.last_offset >= start
            ]
            if reading.is_done:
                offset, reading = limit, None

    def close(self, *, clean: bool, now_ms: int | None = None) -> None:
        """Give all files back; `clean` flushes first, with indexes and a producer snapshot.

        Where nothing was ever written nothing is left. Raises StorageError, where the log was not
        clean.
        """
        try:
            self._settle_replacement()
            if clean and not self.offline and not self.active.is_unmade:
                self.active.become_inactive()
                self.flush(now_ms, checkpoint=True)
        finally:
            self.offline = self.offline or f"{self.topic_partition}: the log is closed"
            for segment in self.segments:
                segment.close()

    def leave(self, unique: UUID) -> Departure:
        """Serve no more; what is left is to rename the folder, in any thread. Raises StorageError.

        `unique` keeps the name apart from that of a topic created again.
        """
        self._settle_replacement()
        self.offline = f"{self.topic_partition}: the log was deleted"
        parent = self.folder.rpartition("/")[0]
        return Departure(
            self.filesystem,
            self.folder,
            f"{parent}/{deleted_folder(self.topic_partition, unique)}",
            self.segments.as_list(),
            self.config.file_delete_delay_ms,
            has_folder=not self.active.is_unmade,
        )
