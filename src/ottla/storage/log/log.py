"""A partition's log. An append is one write; a read only locates batches in a file.

One thread owns a log. Lengthy work (flushing, removing files) is returned as jobs. Truncation,
retention, relocation and lookups by time are in modules of their own, which use the attributes of
`Log`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from zlib import crc32

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.ledger.history import StartCause
from ottla.metadata.image import INTERNAL_TOPICS
from ottla.record.arrival import PLACE
from ottla.record.header import (
    CONTROL_FLAG,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_FLAG,
    BatchHeader,
    computed_crc,
    read_header,
)
from ottla.storage.disk.errors import StorageError, reserve_reached, storage_error
from ottla.storage.disk.filesystem import Buffer, File, FileSystem
from ottla.storage.disk.reserve import DiskUse, Reserve
from ottla.storage.files.offset_ledger import OffsetLedger
from ottla.storage.index.leader_epochs import UNKNOWN_EPOCH, LeaderEpochs
from ottla.storage.log.copied_gaps import note_copied_batch
from ottla.storage.log.flush import FlushJob, FlushState
from ottla.storage.log.flush_journal import FlushJournal
from ottla.storage.producers.state import ProducerStates
from ottla.storage.recovery.readable import Damage, Whole, readable_batches
from ottla.storage.recovery.recovery import Recovery
from ottla.storage.recovery.replay import take_marker
from ottla.storage.segment.batch_walk import BadHeader, header_fault, jump_fault, read_marker
from ottla.storage.segment.config import LogConfig
from ottla.storage.segment.segment import NOT_READ, RELATIVE_OFFSET_MAX, Segment
from ottla.storage.segment.segments import Segments


class Replacement(Protocol):
    """Compacted segments that are about to replace others."""

    def settle(self) -> None:
        """Finish or cancel the replacement, because the log's files are about to change.

        Afterwards the replacement changes no file. If the log already reads the new segments, they
        are put in place; otherwise they are dropped, so that a start after a crash does not find
        them. Raises StorageError.
        """
        ...


class Appended(NamedTuple):
    """The offsets of a batch. `log_append_time` is -1 if the producer's timestamps are kept."""

    base_offset: int
    last_offset: int
    log_append_time: int
    log_start_offset: int
    duplicate: bool = False


class Slice(NamedTuple):
    """Whole batches in a segment's file: `size` bytes (0 for none) from `position`.

    The file stays open for the topic's file deletion delay after its segment was deleted.
    """

    file: File
    position: int
    size: int
    segment_base_offset: int


__all__ = ["Appended", "FlushJob", "Log", "Slice"]

# Looked up once, since looking up an enumeration member costs as much as the check.
_RECORDS, _OWN = DiskUse.RECORDS, DiskUse.OWN


@dataclass(slots=True)
class LoadedLog:
    """The contents of a log's folder.

    `snapshots` are the offsets of its producer snapshots, sorted.
    """

    segments: list[Segment]
    epochs: LeaderEpochs
    producers: ProducerStates
    snapshots: list[int]
    log_start_offset: int
    log_end_offset: int
    recovery: Recovery
    ledger: OffsetLedger


class Log:
    """One partition's log on this broker.

    `segments` hold the records and their positions, `leader_epochs` the leader epochs, `producers`
    sequences and transactions, `ledger` the reasons why offsets are missing, and `flush_state`
    which parts of all this are flushed.
    """

    # Invariant: log_start_offset <= recovery point <= log_end_offset, or nothing was flushed yet.

    def __init__(
        self,
        filesystem: FileSystem,
        folder: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        loaded: LoadedLog,
        recovery_point: int,
        now_ms: int,
    ) -> None:
        """See `open_log`."""
        self.filesystem = filesystem
        self.folder = folder
        self.topic_partition = topic_partition
        self.config = config
        self.segments = Segments(loaded.segments)
        self.leader_epochs = loaded.epochs
        self.producers = loaded.producers
        self.ledger = loaded.ledger
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = end = loaded.log_end_offset
        self.flush_state = FlushState(
            min(recovery_point, end),
            rolled=[segment for segment in loaded.segments[:-1] if segment.indexes.loaded],
            snapshots=loaded.snapshots,
            checkpointed_size=self.segments.active.size if recovery_point >= end else 0,
            now_ms=now_ms,
        )
        # The findings of the recovery when the log was opened.
        self.recovery = loaded.recovery
        # The disk reserve, set by the log directory; None for a log outside of one.
        self.reserve: Reserve | None = None
        # The flush journal, set by the log directory; None if the log never uses one.
        self.journal: FlushJournal | None = None
        is_internal = topic_partition.topic in INTERNAL_TOPICS
        self._use_as_leader = _OWN if is_internal else _RECORDS
        self._use_as_follower = DiskUse.COPIED_OWN if is_internal else DiskUse.COPIED_RECORDS
        # Why the log can no longer be read or written; empty while it can.
        self.offline = ""
        self.is_deleted = False
        # Counts truncations. A job prepared before a truncation is void.
        self.truncations = 0
        # The replacement by compaction, from before its announcement on the disk until all files
        # are in place.
        self.replacement: Replacement | None = None
        self._jitter_ms = self._segment_jitter()

    def make(self) -> None:
        """Create the folder and the first segment's file if missing. Raises StorageError."""
        try:
            self.segments.active.make()
        except OSError as error:
            raise storage_error(error, self.folder, "begin the log") from error

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments' batches."""
        return sum(segment.size for segment in self.segments)

    def append_as_leader(
        self, buffer: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int
    ) -> Appended:
        """Assign the next offsets to a validated batch and write it; `buffer` is patched in place.

        A duplicate of an earlier batch of its producer is not written. The result then has the
        earlier batch's offsets and `duplicate`. Raises OttlaError: the sequence errors of
        `ProducerStates.check`, KAFKA_STORAGE_ERROR (DiskFull: try again later).
        """
        # Hot: 5.9 µs for 8 KiB, 3.8 of them the write; 1.1 more for an idempotent producer. Runs of
        # ordinary batches use `append_run` instead.
        if self.offline:
            raise StorageError(self.offline)
        producer_id = header.producer_id
        if producer_id >= 0:
            if header.attributes & CONTROL_FLAG:
                self._check_marker(buffer, header)
            else:
                earlier = self.producers.check(header)
                if earlier is not None:
                    return Appended(
                        earlier.first_offset, earlier.last_offset, -1, self.log_start_offset, True
                    )
        batch_length = header.batch_length
        size = batch_length + LENGTH_OVERHEAD
        reserve = self.reserve
        if reserve is not None:
            use = _OWN if header.attributes & CONTROL_FLAG else self._use_as_leader
            if not reserve.allows(size, now_ms, use):
                raise reserve_reached(self.folder, size)
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        PLACE.pack_into(buffer, 0, base_offset, batch_length, leader_epoch)
        self._write(buffer, header, base_offset, last_offset, leader_epoch, now_ms)
        return Appended(
            base_offset,
            last_offset,
            header.max_timestamp if header.attributes & LOG_APPEND_TIME_FLAG else -1,
            self.log_start_offset,
        )

    def append_as_follower(self, buffer: Buffer, now_ms: int) -> Appended:
        """Append one or more whole batches that already have offsets.

        Raises OttlaError: CORRUPT_MESSAGE for a bad checksum, length or order of offsets (the
        batches before the bad one are kept), KAFKA_STORAGE_ERROR.
        """
        if self.offline:
            raise StorageError(self.offline)
        view = memoryview(buffer)
        reserve = self.reserve
        if reserve is not None and not reserve.allows(len(view), now_ms, self._use_as_follower):
            raise reserve_reached(self.folder, len(view))
        position, first = 0, -1
        while position + HEADER_SIZE <= len(view):
            header = read_header(view, position)
            fault = header_fault(header, len(view) - position, self.log_end_offset)
            if fault is None and header.base_offset > self.log_end_offset:
                fault = jump_fault(view, position, header)
            if fault is None and computed_crc(view, position, header.size) != header.crc:
                fault = "checksum of the batch is wrong"
            if fault is not None:
                raise OttlaError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"{self.topic_partition}: a leader's batch cannot be appended: {fault}",
                )
            base_offset, last_offset = header.base_offset, header.last_offset
            next_offset = self.log_end_offset
            batch = view[position : position + header.size]
            self._write(batch, header, base_offset, last_offset, header.leader_epoch, now_ms)
            if header.record_count <= last_offset - next_offset:
                below = self.ledger.history.compacted_below
                note_copied_batch(self.segments, header, next_offset, below, now_ms)
            first = base_offset if first < 0 else first
            position += header.size
        return Appended(first, self.log_end_offset - 1, -1, self.log_start_offset)

    def _write(
        self,
        buffer: Buffer,
        header: BatchHeader,
        base_offset: int,
        last_offset: int,
        leader_epoch: int,
        now_ms: int,
    ) -> None:
        active = self.segments.active
        indexes = active.indexes
        size = header.batch_length + LENGTH_OVERHEAD
        if (
            (
                size > self.config.segment_bytes - active.size
                or indexes.offsets.is_full
                or indexes.times.is_full
                or self.is_old(header.max_timestamp, now_ms)
            )
            and active.size > 0
        ) or last_offset - active.base_offset > RELATIVE_OFFSET_MAX:
            overflow = last_offset - self.log_end_offset > RELATIVE_OFFSET_MAX
            self.roll(now_ms, base_offset if overflow else self.log_end_offset)
            active = self.segments.active
        active.append(buffer, size, last_offset, header.max_timestamp)
        if leader_epoch != self.leader_epochs.latest:
            self.leader_epochs.assign(leader_epoch, base_offset)
        self.log_end_offset = last_offset + 1
        if header.producer_id >= 0:
            if header.attributes & CONTROL_FLAG:
                payload = memoryview(buffer)[HEADER_SIZE:size]
                take_marker(self.producers, active, header, base_offset, payload)
            else:
                self.producers.update(header, base_offset)

    def _check_marker(self, buffer: memoryview, header: BatchHeader) -> None:
        marker = read_marker(buffer[HEADER_SIZE : header.size])
        if marker is not None:
            self.producers.check_marker(header, marker[1])

    def is_old(self, timestamp: int, now_ms: int) -> bool:
        """Return whether the active segment has reached `segment.ms`.

        Its age is counted by batch timestamps; by the clock if there are none, or if retention
        counts from arrival.
        """
        active = self.segments.active
        first = active.first_timestamp
        if first == NOT_READ:
            first = active.oldest_timestamp()
        limit = self.config.segment_ms - self._jitter_ms
        if first >= 0 and not self.config.retention_by_append:
            return timestamp - first > limit
        return now_ms - active.created_ms > limit

    def _segment_jitter(self) -> int:
        """Return a jitter in ms that spreads the rolling of many logs; constant for one segment."""
        bound = min(self.config.segment_jitter_ms, self.config.segment_ms)
        if bound <= 0:
            return 0
        return crc32(f"{self.topic_partition}@{self.segments.active.base_offset}".encode()) % bound

    def roll(self, now_ms: int, base_offset: int | None = None) -> None:
        """Close the active segment and begin the next at the log end offset.

        An empty active segment is kept. Raises StorageError; then the log is unchanged.
        """
        start = self.log_end_offset if base_offset is None else base_offset
        closed = self.segments.active
        if closed.size == 0 and closed.base_offset == start:
            return
        self.make()
        self.segments.add(self.new_segment(start, now_ms))
        closed.indexes.add_last_time()
        self.flush_state.on_rolled(closed, start, self.producers.packed())
        self._jitter_ms = self._segment_jitter()

    def new_segment(self, base_offset: int, now_ms: int) -> Segment:
        """Create an empty segment's file; `segments` stays unchanged. Raises StorageError."""
        segment = Segment(self.filesystem, self.folder, base_offset, self.config, now_ms)
        try:
            segment.create()
        except OSError as error:
            raise storage_error(error, segment.path(), "begin a new segment") from error
        return segment

    def read(
        self, offset: int, max_bytes: int, *, max_offset: int, min_one_batch: bool = True
    ) -> Slice:
        """Locate whole batches, from the one that holds `offset` to below `max_offset`.

        They have at most `max_bytes`. With `min_one_batch`, a larger first batch is returned alone.
        Only a few headers are read. Raises OttlaError: OFFSET_OUT_OF_RANGE outside of log start and
        log end offset, KAFKA_STORAGE_ERROR.
        """
        # Hot: 1.5 µs if the reader continues at a remembered place, else 4.5 µs.
        if self.offline:
            raise StorageError(self.offline)
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OttlaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition}: offset {offset} is not between log start offset "
                f"{self.log_start_offset} and log end offset {self.log_end_offset}",
            )
        segments = self.segments
        # Nothing to read is the usual answer to followers and consumers at the end.
        number = segments.floor(offset) if offset < max_offset else len(segments)
        while number < len(segments):
            segment = segments[number]
            try:
                start = segment.position_of(offset)
                if start < segment.size:
                    limit = self._limit(number, segment, max_offset)
                    end = segment.end_within(start, limit, max_bytes, min_one_batch)
                    return Slice(segment.file, start, max(0, end - start), segment.base_offset)
            except BadHeader as bad:
                raise segment.corrupt(bad) from None
            except OSError as error:
                raise storage_error(error, segment.path(), "read") from error
            number += 1
        active = segments.active
        return Slice(active.file, active.size, 0, active.base_offset)

    def _limit(self, number: int, segment: Segment, max_offset: int) -> int:
        """Return the position in `segment` before which all records are below `max_offset`."""
        if segment is self.segments.active:
            if max_offset >= self.log_end_offset:
                segment.remember(self.log_end_offset, segment.size)
                return segment.size
        elif max_offset >= self.segments[number + 1].base_offset:
            return segment.size
        return segment.position_of(max_offset)

    @property
    def needs_flush(self) -> bool:
        """Whether a closed segment or at least `flush.messages` offsets are not flushed."""
        flush_state = self.flush_state
        if flush_state.rolled:
            return True
        return self.log_end_offset - flush_state.recovery_point >= self.config.flush_messages

    def prepare_flush(self, *, checkpoint: bool = False) -> FlushJob:
        """Build the job that makes all records appended so far durable.

        With `checkpoint`, and in any case every CHECKPOINT_BYTES, the job also writes the active
        segment's indexes and a producer snapshot, so that recovery reads nothing before this point.
        A log has one job at a time; pass it to `on_flushed` when `run` has returned. Raises
        StorageError.
        """
        self.make()
        return self.flush_state.prepare(self, checkpoint=checkpoint)

    def on_flushed(self, job: FlushJob, now_ms: int | None = None) -> None:
        """Record that `job.run` has returned without an error."""
        self.flush_state.on_flushed(job, self.truncations, now_ms)

    def flush(self, now_ms: int | None = None, *, checkpoint: bool = False) -> None:
        """Flush at once, in this thread. Raises StorageError."""
        self.flush_state.check()
        job = self.prepare_flush(checkpoint=checkpoint)
        job.run()
        self.on_flushed(job, now_ms)

    def advance_log_start(
        self, offset: int, cause: StartCause | None = None, now_ms: int = -1
    ) -> None:
        """Raise the log start offset to `offset`; a lower offset is ignored.

        `cause` and `now_ms` are noted in the ledger. Pass no cause if the ledger has a note
        already. Raises OttlaError: OFFSET_OUT_OF_RANGE above the log end offset.
        """
        if offset > self.log_end_offset:
            raise OttlaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition}: cannot delete records up to offset {offset}, "
                f"the log ends at {self.log_end_offset}",
            )
        if offset > self.log_start_offset:
            if cause is not None:
                self.note_deleted(self.log_start_offset, offset, cause, now_ms)
            self.log_start_offset = offset
            self.leader_epochs.truncate_from_start(offset)

    def note_deleted(self, start: int, offset: int, cause: StartCause, now_ms: int) -> None:
        """Note in the ledger why [start, offset) is deleted.

        The causes LEADER and WHOLE fill only offsets without a note, so the leader's entries stay.
        """
        history = self.ledger.history
        if cause in (StartCause.LEADER, StartCause.WHOLE):
            history.fill(start, offset, cause, now_ms)
        else:
            history.delete(start, offset, cause, now_ms)

    def begin_epoch(self, leader_epoch: int) -> None:
        """Record that a leader epoch begins at the log end offset; it may stay without records."""
        self.leader_epochs.assign(leader_epoch, self.log_end_offset)

    @property
    def first_epoch(self) -> int:
        """The earliest leader epoch known, -1 for none; older ones cannot be compared."""
        return self.leader_epochs.epochs[0] if self.leader_epochs.epochs else UNKNOWN_EPOCH

    @property
    def last_epoch(self) -> int:
        """The leader epoch of the last record, -1 if there is no record."""
        if self.log_end_offset == self.log_start_offset:
            return UNKNOWN_EPOCH
        return self.leader_epochs.epoch_of(self.log_end_offset - 1)

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """Return (epoch, end offset) as in KIP-101 and KIP-279; (-1, -1) if it is unknown."""
        return self.leader_epochs.end_offset(leader_epoch, self.log_end_offset)

    def update_config(self, config: LogConfig) -> None:
        """Use new settings from now on; new index sizes apply from the next segment on."""
        self.config = config
        for segment in self.segments:
            segment.indexes.config = config

    def readable(self, window_bytes: int) -> Iterator[list[Whole | Damage]]:
        """Yield the readable parts of the log in order, about `window_bytes` at a time.

        Damage does not end the iteration. Each step may run in a thread. Raises StorageError.
        """
        return readable_batches(self, window_bytes)

    def settle_replacement(self) -> None:
        """Finish or cancel a replacement before the log's files change: see `Replacement.settle`.

        Raises StorageError.
        """
        if self.replacement is not None:
            self.replacement.settle()

    def close(self, *, clean: bool, now_ms: int | None = None) -> None:
        """Close all files; with `clean`, first flush records, indexes and a producer snapshot.

        A log that was never written leaves no files. Raises StorageError if it was not closed
        cleanly.
        """
        try:
            self.settle_replacement()
            if clean and not self.offline and not self.flush_state.is_complete(self):
                self.segments.active.indexes.add_last_time()
                self.flush(now_ms, checkpoint=True)
        finally:
            self.offline = self.offline or f"{self.topic_partition}: the log is closed"
            for segment in self.segments:
                segment.close()
