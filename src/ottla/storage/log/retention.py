"""Decides from sizes, times and offsets which old segments may be deleted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ottla.ledger.history import Evidence, StartCause
from ottla.storage.disk.errors import storage_error
from ottla.storage.log.log import Log
from ottla.storage.segment.config import LogConfig
from ottla.storage.segment.segment import Segment
from ottla.storage.segment.segments import Deletion, set_aside


@dataclass(frozen=True, slots=True)
class Verdict:
    """Retention may delete the `count` oldest segments.

    The `by_age` oldest of them exceed the retention time. The `by_start` oldest lie below the log
    start offset, so none of their records can be read.
    """

    count: int
    by_age: int
    by_start: int = 0

    def at_most(self, count: int) -> "Verdict":
        """Return the verdict limited to the `count` oldest segments."""
        return Verdict(count, min(self.by_age, count), min(self.by_start, count))

    def without(self, count: int) -> "Verdict":
        """Return the verdict on the remaining segments after the `count` oldest were removed."""
        left = max(0, self.count - count)
        return Verdict(left, max(0, self.by_age - count), max(0, self.by_start - count))


def deletable(
    segments: list[Segment],
    config: LogConfig,
    *,
    now_ms: int,
    high_watermark: int,
    log_start_offset: int,
    log_end_offset: int,
) -> Verdict:
    """Decide how many of the oldest segments may be deleted.

    Reasons, as in Kafka: all records are older than `retention_ms`; the log exceeds
    `retention_bytes` even without them; all records are below the log start offset. Topics with
    compaction alone delete for the last reason only. Segments with records above the high watermark
    are kept, and an empty active segment.
    """
    by_age = by_size = 0
    if "delete" in config.cleanup_policy:
        by_age = _by_age(segments, config, now_ms)
        by_size = _by_size(segments, config.retention_bytes)
    by_start = _by_start(segments, log_start_offset)
    count = max(by_age, by_size, by_start)
    while count and _end(segments, count - 1, log_end_offset) > high_watermark:
        count -= 1
    if count == len(segments) and segments[-1].size == 0:
        count -= 1
    return Verdict(count, by_age, by_start).at_most(count)


def _end(segments: list[Segment], number: int, log_end_offset: int) -> int:
    return segments[number + 1].base_offset if number + 1 < len(segments) else log_end_offset


def age_begins_ms(segment: Segment, config: LogConfig) -> int:
    """Return the time from which retention.ms counts for a segment. Raises OSError."""
    return segment.arrived_ms() if config.retention_by_append else segment.largest_timestamp()


def time_setting(config: LogConfig) -> str:
    """Return the settings that decide when records are deleted by their age."""
    by_append = ", ottla.retention.by=append" if config.retention_by_append else ""
    return f"retention.ms={config.retention_ms}{by_append}"


def _by_age(segments: list[Segment], config: LogConfig, now_ms: int) -> int:
    if config.retention_ms < 0:
        return 0
    count = 0
    for segment in segments:
        if now_ms - age_begins_ms(segment, config) <= config.retention_ms:
            break
        count += 1
    return count


def _by_size(segments: list[Segment], retention_bytes: int) -> int:
    if retention_bytes < 0:
        return 0
    excess = sum(segment.size for segment in segments) - retention_bytes
    count = 0
    for segment in segments:
        excess -= segment.size
        if excess < 0:
            break
        count += 1
    return count


def _by_start(segments: list[Segment], log_start_offset: int) -> int:
    count = 0
    for following in segments[1:]:
        if following.base_offset > log_start_offset:
            break
        count += 1
    return count


# Segments before the active one from which the rate of writing is computed.
_RATE_SEGMENTS = 3


@dataclass(frozen=True, slots=True)
class Hold:
    """How many segments are deleted now, and how many bytes are held for readers.

    The `count` oldest segments are deleted. `held_bytes` is the size of the segments that retention
    selected but keeps. `setting` names the limit that ended a hold, so that unread segments are
    deleted; it is empty if none did.
    """

    count: int
    held_bytes: int = 0
    held_since_ms: int = -1
    setting: str = ""


def hold(
    segments: Sequence[Segment],
    verdict: Verdict,
    read_to: int,
    config: LogConfig,
    wanted_since: Mapping[int, int],
    *,
    log_end_offset: int,
    now_ms: int,
) -> Hold:
    """Decide which segments are held because readers still need them. Raises OSError.

    All readers have read the offsets below `read_to`; -1 if one of them has not committed an
    offset. `wanted_since` maps base offsets to the time when retention first selected the segment.
    """
    ends = [following.base_offset for _, following in pairwise(segments)] + [log_end_offset]
    count = verdict.by_start
    while count < verdict.count and ends[count] <= read_to:
        count += 1
    setting = ""
    while count < verdict.count:
        held_bytes = sum(segment.size for segment in segments[count : verdict.count])
        since_ms = _since(segments[count], count < verdict.by_age, config, wanted_since, now_ms)
        if held_bytes > config.hold_max_bytes:
            setting = f"ottla.retention.hold.max.bytes={config.hold_max_bytes}"
        elif now_ms - since_ms > config.hold_max_ms:
            setting = f"ottla.retention.hold.max.ms={config.hold_max_ms}"
        else:
            return Hold(count, held_bytes, since_ms, setting)
        count += 1
    return Hold(count, setting=setting)


def _since(
    segment: Segment,
    is_old: bool,
    config: LogConfig,
    wanted_since: Mapping[int, int],
    now_ms: int,
) -> int:
    """Return when retention first selected the segment; its age shows that even after a restart."""
    since_ms = wanted_since.get(segment.base_offset, now_ms)
    return (
        min(since_ms, age_begins_ms(segment, config) + config.retention_ms) if is_old else since_ms
    )


@dataclass(frozen=True, slots=True)
class RetentionDeadline:
    """How long until the record at an offset is deleted, and by which setting.

    `left_ms` is 0 if the next pass deletes it. Both are None if no present setting deletes it.
    """

    left_ms: int | None
    setting: str | None


NEVER = RetentionDeadline(None, None)


def deadline(
    segments: Sequence[Segment],
    config: LogConfig,
    offset: int,
    *,
    log_end_offset: int,
    now_ms: int,
    is_held: bool,
) -> RetentionDeadline:
    """Predict when retention deletes the record at `offset`, by its age and the write rate.

    `is_held` says that retention waits for the record's reader. Raises OSError.
    """
    if offset >= log_end_offset or "delete" not in config.cleanup_policy:
        return NEVER
    number = max(0, sum(segment.base_offset <= offset for segment in segments) - 1)
    rate = bytes_per_ms(segments, now_ms)
    found: list[tuple[int, str]] = []
    if config.retention_ms >= 0:
        age_ms = now_ms - age_begins_ms(segments[number], config)
        found.append((max(0, config.retention_ms - age_ms), time_setting(config)))
    if config.retention_bytes >= 0:
        behind = sum(segment.size for segment in segments[number + 1 :])
        missing = max(0, config.retention_bytes - behind)
        if missing == 0 or rate > 0:
            left_ms = round(missing / rate) if missing else 0
            found.append((left_ms, f"retention.bytes={config.retention_bytes}"))
    if not found:
        return NEVER
    left_ms, setting = min(found)
    if is_held:
        more_ms = config.hold_max_ms
        if rate > 0:
            more_ms = min(more_ms, round(config.hold_max_bytes / rate))
        left_ms += more_ms
    return RetentionDeadline(left_ms, setting)


def bytes_per_ms(segments: Sequence[Segment], now_ms: int) -> float:
    """Return the recent write rate by the records' timestamps; 0 if they do not show one.

    Raises OSError.
    """
    latest = [segment for segment in segments[-1 - _RATE_SEGMENTS :] if segment.size]
    if not latest:
        return 0.0
    elapsed_ms = now_ms - latest[0].oldest_timestamp()
    return sum(segment.size for segment in latest) / elapsed_ms if elapsed_ms > 0 else 0.0


def old_segments(log: Log, now_ms: int, high_watermark: int) -> Verdict:
    """Decide which segments retention may delete. Raises StorageError."""
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
    """Remove the segments that retention deletes; return jobs to be run after their delay.

    `verdict` is the result of `old_segments`, if the caller has it. The deletion is noted in the
    ledger, which should be on the disk before: see `note_old_segments`. Raises StorageError.
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
    """Note in the ledger which segments retention deletes by age, and which by size.

    Offsets below the log start offset are left out, since they were noted before.
    """
    if not verdict.count:
        return
    segments, history = log.segments.as_list(), log.ledger.history
    bounds = [segment.base_offset for segment in segments[1:]] + [log.log_end_offset]
    start, end = log.log_start_offset, bounds[verdict.count - 1]
    aged = bounds[verdict.by_age - 1] if verdict.by_age else start
    history.delete(start, min(aged, end), StartCause.RETENTION_TIME, now_ms)
    history.delete(max(start, aged), end, StartCause.RETENTION_BYTES, now_ms)
    for number, segment in enumerate(segments[: verdict.count]):
        is_aged = number < verdict.by_age
        setting = (
            time_setting(log.config) if is_aged else f"retention.bytes={log.config.retention_bytes}"
        )
        first, last = max(start, segment.base_offset), bounds[number]
        newest_ms, arrived_ms = segment.largest_timestamp(), segment.arrived_ms()
        history.prove(Evidence(first, last, now_ms, setting, newest_ms, arrived_ms))


def set_segments_aside(log: Log, removed: list[Segment]) -> Deletion:
    """Rename the files of segments that were removed from the log. Raises StorageError."""
    log.settle_replacement()
    log.flush_state.on_removed(removed)
    try:
        return set_aside(log.filesystem, removed, log.config.file_delete_delay_ms)
    except OSError as error:
        raise storage_error(error, log.folder, "set segments aside") from error
