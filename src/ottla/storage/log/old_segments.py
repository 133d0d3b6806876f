"""Removes segments from a log, because of retention or for other reasons.

Which ones retention lets go is decided in `retention`.
"""

from ottla.ledger.history import StartCause
from ottla.storage.disk.errors import storage_error
from ottla.storage.log.log import Log
from ottla.storage.log.retention import Verdict, deletable
from ottla.storage.segment.deletion import Deletion, set_aside
from ottla.storage.segment.segment import Segment


def old_segments(log: Log, now_ms: int, high_watermark: int) -> Verdict:
    """Which segments retention lets go. Raises StorageError."""
    try:
        return deletable(
            log.segments.as_list(),
            log.config,
            now_ms=now_ms,
            high_watermark=high_watermark,
            log_start_offset=log.log_start_offset,
            log_end_offset=log.log_end_offset,
        )
    except OSError as error:
        raise storage_error(error, log.folder, "look for old segments") from error


def delete_old_segments(
    log: Log, now_ms: int, high_watermark: int, verdict: Verdict | None = None
) -> list[Deletion]:
    """Take segments out of the log that retention lets go; run the jobs after their delay.

    `verdict`: of `old_segments`, where the caller has it. What goes is noted in the ledger, which
    should be on the disk before: see `note_old_segments`. Raises StorageError.
    """
    verdict = verdict or old_segments(log, now_ms, high_watermark)
    count = verdict.count
    if not count:
        return []
    note_old_segments(log, verdict, now_ms)
    if count == len(log.segments):
        log.roll(now_ms)
    removed = log.segments.remove_first(count)
    first = log.segments.first.base_offset
    if first > log.log_start_offset:
        log.advance_log_start(first)
    return [set_segments_aside(log, removed)]


def note_old_segments(log: Log, verdict: Verdict, now_ms: int) -> None:
    """Note in the ledger which segments go for which reason, those below the start apart."""
    if not verdict.count:
        return
    segments, history = log.segments.as_list(), log.ledger.history
    bounds = [segment.base_offset for segment in segments[1:]] + [log.log_end_offset]
    start, end = log.log_start_offset, bounds[verdict.count - 1]
    aged = bounds[verdict.by_age - 1] if verdict.by_age else start
    history.delete(start, min(aged, end), StartCause.RETENTION_TIME, now_ms)
    history.delete(max(start, aged), end, StartCause.RETENTION_BYTES, now_ms)


def set_segments_aside(log: Log, removed: list[Segment]) -> Deletion:
    """Rename the files of segments that were taken out of the log. Raises StorageError."""
    log.settle_replacement()
    log.flush_state.on_removed(removed)
    try:
        return set_aside(log.filesystem, removed, log.config.file_delete_delay_ms)
    except OSError as error:
        raise storage_error(error, log.folder, "set segments aside") from error
