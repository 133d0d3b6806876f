"""Finds a compacted log's cleanable part, makes the job that cleans it, and the replacements."""

from dataclasses import dataclass
from itertools import pairwise

from ottla.storage.cleaner.job import CleaningJob, CleaningOutcome
from ottla.storage.cleaner.survivors import NO_DATA, LastOfProducer
from ottla.storage.cleaner.swap import Swap
from ottla.storage.log.log import Log
from ottla.storage.segment.config import LONG_MAX
from ottla.storage.segment.segment import Segment


class LogCleaning:
    """A log and the part of it to be cleaned, as of the creation of this object."""

    def __init__(self, log: Log, end: int) -> None:
        """Plan a cleaning of all segments below `end`, which must be the start of a segment."""
        self.log = log
        self._end = end
        self._segments = [s for s in log.segments.as_list()[:-1] if s.base_offset < end]
        self._truncations = log.truncations
        assert self._segments

    @property
    def still_holds(self) -> bool:
        """Whether the log has not been truncated and has lost no segment since."""
        log = self.log
        held = log.segments.as_list()[: len(self._segments)]
        return not log.offline and log.truncations == self._truncations and held == self._segments

    def job(
        self,
        first_dirty: int,
        *,
        now_ms: int,
        keys_max: int,
        bytes_per_second: float = 0.0,
        dry_run: bool = False,
    ) -> CleaningJob:
        """Build the job for a child process; 0 bytes per second means no limit."""
        log, config = self.log, self.log.config
        start = self._segments[0].base_offset
        return CleaningJob(
            folder=log.folder,
            segments=[(segment.base_offset, segment.size) for segment in self._segments],
            first_dirty=first_dirty,
            end=self._end,
            now_ms=now_ms,
            delete_retention_ms=config.delete_retention_ms,
            segment_bytes=config.segment_bytes,
            segment_index_bytes=config.segment_index_bytes,
            index_interval_bytes=config.index_interval_bytes,
            keys_max=keys_max,
            bytes_per_second=bytes_per_second,
            last_batches={
                producer_id: LastOfProducer(
                    entry.last_offset if entry.batches else NO_DATA, entry.producer_epoch
                )
                for producer_id, entry in log.producers.entries.items()
            },
            aborted=log.segments.aborted_transactions(start, self._end),
            pass_number=0 if dry_run else log.ledger.history.begin_pass(),
            dry_run=dry_run,
        )

    def swaps(self, outcome: CleaningOutcome) -> list[Swap]:
        """Return the replacements, in order; they are valid only while `still_holds`."""
        by_base: dict[int, Segment] = {s.base_offset: s for s in self._segments}
        return [
            Swap(self.log, [by_base[base] for base in group.base_offsets], group.size)
            for group in outcome.groups
        ]


_MIN_LAG = "min.compaction.lag.ms"


@dataclass(frozen=True, slots=True)
class Dirt:
    """The part [first_dirty, end) may be cleaned now; `bound` is the reason for `end`.

    Sizes are in bytes.
    """

    first_dirty: int
    end: int
    bound: str
    clean_bytes: int
    dirty_bytes: int
    # Whether something dirty is older than max.compaction.lag.ms.
    overdue: bool

    @property
    def waits_for_age(self) -> bool:
        """Whether min.compaction.lag.ms bounds the cleanable part."""
        return self.bound.startswith(_MIN_LAG)

    @property
    def ratio(self) -> float:
        """The dirty share of the bytes below `end`."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_due(self, ratio_min: float) -> bool:
        """Return whether a cleaning is worthwhile, by Kafka's rule."""
        return self.dirty_bytes > 0 and (self.overdue or self.ratio > ratio_min)


def look(log: Log, cleaned: int | None, limit: int, now_ms: int) -> Dirt:
    """Find the dirty part.

    `cleaned` is the end of the last cleaning; nothing from `limit` on is cleaned. Raises
    StorageError, OSError: times of segments may have to be read.
    """
    first_dirty = log.log_start_offset if cleaned is None else cleaned
    if not log.log_start_offset <= first_dirty <= log.log_end_offset:
        first_dirty = log.log_start_offset
    segments = log.segments.as_list()
    end, bound = segments[0].base_offset, "the active segment"
    clean_bytes = dirty_bytes = 0
    oldest = LONG_MAX
    for segment, following in pairwise(segments):
        is_dirty = following.base_offset > first_dirty
        hindrance = _hindrance(log, segment, following.base_offset, limit, now_ms, is_dirty)
        if hindrance is not None:
            bound = hindrance
            break
        end = following.base_offset
        if is_dirty:
            dirty_bytes += segment.size
            if segment.size:
                oldest = min(oldest, segment.oldest_timestamp())
        else:
            clean_bytes += segment.size
    overdue = 0 <= oldest < now_ms - log.config.max_compaction_lag_ms
    return Dirt(first_dirty, end, bound, clean_bytes, dirty_bytes, overdue)


def _hindrance(
    log: Log, segment: Segment, end: int, limit: int, now_ms: int, is_dirty: bool
) -> str | None:
    """Return why a closed segment that ends before `end` must not be cleaned; None if it may."""
    if end > limit:
        return "records that are not committed, or transactions that are not decided"
    flush_state = log.flush_state
    is_flushed = end <= flush_state.recovery_point and segment not in flush_state.rolled
    if not is_flushed or segment.has_new_removals:
        return "records that are not flushed"
    lag_ms = log.config.min_compaction_lag_ms
    if is_dirty and lag_ms and segment.largest_timestamp() > now_ms - lag_ms:
        return f"{_MIN_LAG}={lag_ms}"
    return None
