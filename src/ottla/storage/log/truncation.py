"""Truncates a log: drops the records that a follower has and its leader has not."""

from ottla.ledger.history import StartCause
from ottla.record.header import HEADER_SIZE, read_header
from ottla.storage.disk.errors import storage_error
from ottla.storage.disk.filesystem import Buffer
from ottla.storage.files.names import SNAPSHOT_SUFFIX, segment_file
from ottla.storage.log.copied_gaps import recount_truncated
from ottla.storage.log.log import Log
from ottla.storage.log.retention import set_segments_aside
from ottla.storage.recovery.replay import rebuild_producers
from ottla.storage.segment.batch_walk import BadHeader
from ottla.storage.segment.segment import Segment
from ottla.storage.segment.segments import Deletion


def end_truncated_to(log: Log, offset: int) -> int:
    """Return where the log would end after `truncate_to(log, offset)`. Raises StorageError.

    A batch that holds `offset` is dropped whole. The log does not end inside a gap, because after a
    restart nothing would show that it reached into the gap.
    """
    if not log.log_start_offset <= offset < log.log_end_offset:
        return offset
    segment = log.segments[log.segments.floor(offset)]
    try:
        end = segment.end_before(segment.position_of(offset))
    except BadHeader as bad:
        raise segment.corrupt(bad) from None
    except OSError as error:
        raise storage_error(error, segment.path(), "look for the end of a truncation") from error
    return max(log.log_start_offset, end)


def truncate_to(log: Log, offset: int, now_ms: int) -> list[Deletion]:
    """Drop all records at and above `offset`; the log then ends at `end_truncated_to`.

    The recovery point checkpoint must be lowered to that offset first (`LogDirectory.truncate`
    does). Returns jobs that remove whole segments. Raises StorageError.
    """
    if offset >= log.log_end_offset:
        return []
    if offset < log.log_start_offset:
        return restart_at(log, offset, now_ms)
    keep = log.segments.floor(offset) + 1
    removed = log.segments.remove_after(keep)
    active = log.segments.active
    _begin(log, active)
    deletions = [set_segments_aside(log, removed)] if removed else []
    try:
        position = active.position_of(offset)
        offset = max(log.log_start_offset, active.end_before(position))
        if not active.indexes.loaded:
            active.load_indexes()
        active.truncate(position, offset)
        recount_truncated(active, offset)
    except BadHeader as bad:
        raise active.corrupt(bad) from None
    except OSError as error:
        raise storage_error(error, active.path(), "truncate") from error
    _end_at(log, offset, now_ms)
    return deletions


def restart_at(log: Log, offset: int, now_ms: int) -> list[Deletion]:
    """Drop all records and continue, empty, at `offset`. Raises StorageError."""
    log.make()
    log.note_deleted(0, offset, StartCause.WHOLE, now_ms)
    _begin(log, None)
    deletion = set_segments_aside(log, log.segments.as_list())
    log.segments.replace(log.new_segment(offset, now_ms))
    log.log_start_offset = offset
    log.leader_epochs.clear()
    _end_at(log, offset, now_ms)
    return [deletion]


def begin_within(log: Log, records: Buffer, now_ms: int) -> list[Deletion]:
    """Move an empty log's start back to its first batch, if the start lies inside of that batch.

    This happens in a copy of a log whose records were deleted up to the middle of a batch.
    `records` are about to be appended. Raises StorageError.
    """
    end = log.log_end_offset
    if end != log.log_start_offset or len(records) < HEADER_SIZE:
        return []
    header = read_header(records)
    if not header.base_offset < end <= header.last_offset:
        return []
    # Offsets below the old start were deleted, and stay deleted.
    return restart_at(log, header.base_offset, now_ms)


def _begin(log: Log, last: Segment | None) -> None:
    """Void the jobs prepared before this truncation; `last` is the last segment that stays."""
    log.settle_replacement()
    log.truncations += 1
    log.flush_state.on_truncated(last)


def _end_at(log: Log, offset: int, now_ms: int) -> None:
    log.log_end_offset = offset
    log.flush_state.lower_recovery_point(offset)
    log.leader_epochs.truncate_from_end(offset)
    _reload_producers(log, now_ms)


def _reload_producers(log: Log, now_ms: int) -> None:
    """Rebuild the producers' state as of the log's new end. Raises StorageError."""
    end, snapshots = log.log_end_offset, log.flush_state.snapshots
    try:
        for offset in [snapshot for snapshot in snapshots if snapshot > end]:
            log.filesystem.unlink(f"{log.folder}/{segment_file(offset, SNAPSHOT_SUFFIX)}")
            snapshots.remove(offset)
        rebuild_producers(
            log.filesystem,
            log.folder,
            log.segments.as_list(),
            snapshots,
            log.producers,
            end,
            now_ms,
        )
    except OSError as error:
        raise storage_error(error, log.folder, "read the producers' state again") from error
