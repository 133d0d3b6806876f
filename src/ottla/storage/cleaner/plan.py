"""From a log to the job that cleans it, and from the outcome to the replacements of segments."""

from ottla.storage.cleaner.job import CleaningJob, CleaningOutcome
from ottla.storage.cleaner.survivors import NO_DATA, LastOfProducer
from ottla.storage.cleaner.swap import Swap
from ottla.storage.log.log import Log
from ottla.storage.segment.segment import Segment


class LogCleaning:
    """A log and its part to be cleaned, as it was when this was made."""

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
        """The job for a child; 0 bytes per second means no limit."""
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
        """The replacements, in order; meaningful while `still_holds`."""
        by_base: dict[int, Segment] = {s.base_offset: s for s in self._segments}
        return [
            Swap(self.log, [by_base[base] for base in group.base_offsets], group.size)
            for group in outcome.groups
        ]
