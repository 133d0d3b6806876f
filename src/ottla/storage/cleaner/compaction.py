"""One cleaning of a log's files; the broker runs it in a child process.

The dirty part is read once for the map of keys. Then all segments are read from the log's
beginning, and the kept records are written into new segments; small segments are merged. The log
itself does not change.
"""

from collections.abc import Iterator

from ottla.base.errors import ErrorCode, OttlaError
from ottla.ledger.files import decode_removals
from ottla.ledger.removals import Pass, SegmentRemovals
from ottla.record.header import HEADER_SIZE, BatchHeader, read_header
from ottla.record.key_map import KeyMap, index_keys, sift
from ottla.record.reader import section
from ottla.storage.cleaner.cleaned_segment import CleanedSegment, Pace, read_batches
from ottla.storage.cleaner.job import CleanedGroup, CleaningJob, CleaningOutcome
from ottla.storage.cleaner.smaller_batch import header_alone, smaller
from ottla.storage.cleaner.survivors import Fate, Keeping, Transactions, has_horizon
from ottla.storage.disk.filesystem import Buffer, FileSystem
from ottla.storage.files.names import LEDGER_SUFFIX, LOG_SUFFIX, segment_file
from ottla.storage.segment.batch_walk import read_marker
from ottla.storage.segment.segment import RELATIVE_OFFSET_MAX

# The limit for a compressed batch, which was accepted at its compressed size.
_EXPANDED_BYTES_MAX = 256 << 20


class Cleaning:
    """One cleaning under way. `run` blocks for as long as it takes."""

    def __init__(self, filesystem: FileSystem, job: CleaningJob, pace: Pace) -> None:
        self._filesystem = filesystem
        self._job = job
        self._pace = pace
        self._map = KeyMap(job.keys_max)
        self._outcome = CleaningOutcome()
        self._keeping: Keeping
        self._pass = Pass(job.pass_number, job.now_ms, job.pass_number)

    def run(self) -> CleaningOutcome:
        """Write the `.cleaned` files, unless it is a dry run. Raises OttlaError, OSError."""
        job, outcome = self._job, self._outcome
        self._index()
        outcome.keys, outcome.map_bytes = self._map.key_count, self._map.size_bytes
        outcome.end = self._map.latest_offset + 1
        if outcome.end <= job.first_dirty:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"{job.folder}: not even one batch fits into a map of {job.keys_max} keys; raise "
                "log.cleaner.dedupe.buffer.size",
            )
        self._keeping = Keeping(
            job.last_batches,
            Transactions(job.aborted),
            end_offset=outcome.end,
            now_ms=job.now_ms,
        )
        for group in self._groups():
            self._clean(group)
        return outcome

    # -- the map

    def _index(self) -> None:
        """Put the keys of the dirty part into the map, as many whole batches as fit."""
        job = self._job
        transactions = Transactions(job.aborted)
        bases = [base for base, _ in job.segments]
        for (base, size), end in zip(job.segments, [*bases[1:], job.end], strict=True):
            if end <= job.first_dirty:
                continue
            for header, batch in self._batches(base, size):
                if header.last_offset < job.first_dirty:
                    continue
                if not self._index_batch(header, batch, transactions):
                    return
                self._map.latest_offset = header.last_offset
            # All batches after the last one may have been removed.
            self._map.latest_offset = end - 1

    def _index_batch(self, header: BatchHeader, batch: bytes, transactions: Transactions) -> bool:
        if header.is_control:
            is_commit = _marker(batch) if header.record_count else None
            if is_commit is not None:
                transactions.on_marker(header, is_commit=is_commit)
            return True
        if transactions.on_batch(header) or not header.record_count:
            return True
        return index_keys(
            _expanded(header, batch),
            header.record_count,
            header.base_offset,
            self._job.first_dirty,
            self._map,
        )

    # -- what stays

    def _groups(self) -> list[list[tuple[int, int]]]:
        """Groups of segments to merge: by size and offsets before the cleaning, as in Kafka."""
        job = self._job
        groups: list[list[tuple[int, int]]] = []
        room = 0
        bases = [base for base, _ in job.segments]
        for (base, size), end in zip(job.segments, [*bases[1:], job.end], strict=True):
            if base >= self._outcome.end:
                break
            if groups and size <= room and end - 1 - groups[-1][0][0] <= RELATIVE_OFFSET_MAX:
                groups[-1].append((base, size))
            else:
                groups.append([(base, size)])
                room = job.segment_bytes
            room -= size
        return groups

    def _clean(self, group: list[tuple[int, int]]) -> None:
        job, outcome = self._job, self._outcome
        segment = None
        if not job.dry_run:
            segment = CleanedSegment(
                self._filesystem,
                job.folder,
                group[0][0],
                job.segment_index_bytes,
                job.index_interval_bytes,
                self._pace,
            )
        removals = SegmentRemovals(reach=self._end_of(group))
        size = 0
        for base, read_size in group:
            removals.join(self._noted(base))
            outcome.bytes_read += read_size
            for header, batch in self._batches(base, read_size):
                outcome.records_read += header.record_count
                kept_header, kept = self._kept(header, batch, segment)
                gone = header.record_count - (0 if kept is None else kept_header.record_count)
                if gone:
                    removals.add(header.base_offset, header.last_offset + 1, gone, self._pass)
                if kept is None:
                    continue
                outcome.records_kept += kept_header.record_count
                size += len(kept)
                if segment is not None:
                    segment.append(kept_header, kept)
        if segment is not None:
            segment.close(removals)
        outcome.bytes_kept += size
        outcome.groups.append(CleanedGroup([base for base, _ in group], size))

    def _end_of(self, group: list[tuple[int, int]]) -> int:
        """Return the base offset of the segment after a group."""
        bases = [base for base, _ in self._job.segments]
        number = bases.index(group[-1][0]) + 1
        return bases[number] if number < len(bases) else self._job.end

    def _noted(self, base: int) -> SegmentRemovals:
        """Return the removals that earlier passes recorded for a segment."""
        path = f"{self._job.folder}/{segment_file(base, LEDGER_SUFFIX)}"
        try:
            return decode_removals(self._filesystem.read_bytes(path))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return SegmentRemovals()

    def _kept(
        self, header: BatchHeader, batch: bytes, segment: CleanedSegment | None
    ) -> tuple[BatchHeader, Buffer | None]:
        """Return the new header and the bytes that remain of a batch; None if nothing remains."""
        if header.is_control and header.record_count:
            return self._kept_marker(header, batch, segment)
        if not header.record_count:
            return header, (batch if self._keeping.empty(header) is Fate.KEEP else None)
        fate = self._keeping.data(header)
        if fate in (Fate.DROP, Fate.DROP_KEEP_HEADER):
            self._outcome.records_aborted += header.record_count
            return _remains(header, fate)
        return self._kept_records(header, batch, fate)

    def _kept_marker(
        self, header: BatchHeader, batch: bytes, segment: CleanedSegment | None
    ) -> tuple[BatchHeader, Buffer | None]:
        is_commit = _marker(batch)
        if is_commit is None:
            return header, batch
        fate, entry = self._keeping.marker(header, is_commit=is_commit)
        if entry is not None and segment is not None:
            segment.note_aborted(entry)
        if fate is Fate.KEEP_UNTIL:
            return self._with_horizon(header, batch)
        return (header, batch) if fate is Fate.KEEP else _remains(header, fate)

    def _with_horizon(self, header: BatchHeader, batch: bytes) -> tuple[BatchHeader, Buffer]:
        content = _expanded(header, batch)
        return self._smaller(
            header, content, header.record_count, header.max_timestamp, sets_horizon=True
        )

    def _kept_records(
        self, header: BatchHeader, batch: bytes, fate: Fate
    ) -> tuple[BatchHeader, Buffer | None]:
        content = _expanded(header, batch)
        sifted = sift(
            content,
            header.record_count,
            header.base_offset,
            header.base_timestamp,
            self._map,
            tombstones_stay=self._keeping.tombstones_stay(header),
        )
        self._outcome.tombstones_dropped += sifted.tombstones_dropped
        if not sifted.kept:
            return _remains(header, Fate.DROP if fate is Fate.SIFT else Fate.DROP_KEEP_HEADER)
        sets_horizon = sifted.tombstones and not has_horizon(header)
        if sifted.kept == header.record_count and not sets_horizon:
            return header, batch
        runs = sifted.runs
        parts = [content[runs[n] : runs[n + 1]] for n in range(0, len(runs), 2)]
        return self._smaller(
            header, b"".join(parts), sifted.kept, sifted.max_timestamp, sets_horizon=sets_horizon
        )

    def _smaller(
        self,
        header: BatchHeader,
        content: bytes,
        record_count: int,
        max_timestamp: int,
        *,
        sets_horizon: bool,
    ) -> tuple[BatchHeader, Buffer]:
        horizon_ms = self._job.now_ms + self._job.delete_retention_ms if sets_horizon else None
        batch = smaller(header, content, record_count, max_timestamp, horizon_ms=horizon_ms)
        return read_header(batch), batch

    def _batches(self, base: int, size: int) -> Iterator[tuple[BatchHeader, bytes]]:
        path = f"{self._job.folder}/{segment_file(base, LOG_SUFFIX)}"
        return read_batches(self._filesystem, path, base, size, self._pace)


def _expanded(header: BatchHeader, batch: bytes) -> bytes:
    return section(batch, 0, header, _EXPANDED_BYTES_MAX)


def _marker(batch: bytes) -> bool | None:
    """Return whether a control batch commits; None if it does not end a transaction."""
    marker = read_marker(batch[HEADER_SIZE:])
    return None if marker is None else marker[0]


def _remains(header: BatchHeader, fate: Fate) -> tuple[BatchHeader, Buffer | None]:
    """Return a batch without its records, or nothing."""
    if fate is Fate.DROP:
        return header, None
    batch = header_alone(header)
    return read_header(batch), batch
