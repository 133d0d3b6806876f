"""Retention that waits for readers, within bounds; and how long a reader has left.

Pure but for timestamps that a segment may have to read. Sizes in bytes, times in milliseconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ottla.storage.log.config import LogConfig
from ottla.storage.log.retention import Verdict
from ottla.storage.segment.segment import Segment

# Segments before the active one from which the rate of writing is computed.
_RATE_SEGMENTS = 3


@dataclass(frozen=True, slots=True)
class Hold:
    """Of what retention lets go the `count` oldest segments do go; `held_bytes` are kept.

    `setting` names the bound that ended a hold, empty where none did: what goes then was not read.
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
    """Keep back what readers still need. Raises OSError.

    `read_to`: below it all readers have read, -1 where one has not committed an offset.
    `wanted_since`: by base offset, when retention first wanted a segment to go.
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
    """When retention first wanted the segment to go: known from its age after a restart, too."""
    since_ms = wanted_since.get(segment.base_offset, now_ms)
    return min(since_ms, segment.largest_timestamp() + config.retention_ms) if is_old else since_ms


@dataclass(frozen=True, slots=True)
class RetentionDeadline:
    """When the record at an offset is deleted; `left_ms` is 0 where the next pass does it.

    Both are None where nothing will delete it under the present settings.
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
    """When retention deletes the record at `offset`, by its age and by the present rate of writing.

    `is_held`: its reader is one that is waited for. Raises OSError.
    """
    if offset >= log_end_offset or "delete" not in config.cleanup_policy:
        return NEVER
    number = max(0, sum(segment.base_offset <= offset for segment in segments) - 1)
    rate = bytes_per_ms(segments, now_ms)
    found: list[tuple[int, str]] = []
    if config.retention_ms >= 0:
        age_ms = now_ms - segments[number].largest_timestamp()
        found.append((max(0, config.retention_ms - age_ms), f"retention.ms={config.retention_ms}"))
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
    """How fast the log has grown of late, by the times of its records; 0 where these say nothing.

    Raises OSError.
    """
    latest = [segment for segment in segments[-1 - _RATE_SEGMENTS :] if segment.size]
    if not latest:
        return 0.0
    elapsed_ms = now_ms - latest[0].oldest_timestamp()
    return sum(segment.size for segment in latest) / elapsed_ms if elapsed_ms > 0 else 0.0
