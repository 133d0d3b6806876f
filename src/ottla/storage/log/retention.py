"""Which old segments may go: decided from sizes, times and offsets alone."""

from dataclasses import dataclass

from ottla.storage.log.config import LogConfig
from ottla.storage.segment.segment import Segment


@dataclass(frozen=True, slots=True)
class Verdict:
    """The `count` oldest segments may go.

    The `by_age` oldest of them by their age, the `by_start` oldest in any case: nothing in them
    can be read any more.
    """

    count: int
    by_age: int
    by_start: int = 0

    def at_most(self, count: int) -> "Verdict":
        """No more than the `count` oldest."""
        return Verdict(count, min(self.by_age, count), min(self.by_start, count))

    def without(self, count: int) -> "Verdict":
        """What is left when the `count` oldest have gone."""
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
    """How many segments from the oldest on may be deleted.

    Reasons, as in Kafka: all records older than `retention_ms`; the log larger than
    `retention_bytes` without them; all records below the log start offset. Only the last holds
    for compacted topics that do not delete. Nothing above the high watermark goes, nor an empty
    active segment.
    """
    by_age = by_size = 0
    if "delete" in config.cleanup_policy:
        by_age = _by_age(segments, config.retention_ms, now_ms)
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


def _by_age(segments: list[Segment], retention_ms: int, now_ms: int) -> int:
    if retention_ms < 0:
        return 0
    count = 0
    for segment in segments:
        if now_ms - segment.largest_timestamp() <= retention_ms:
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
