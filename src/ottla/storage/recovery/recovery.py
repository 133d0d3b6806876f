"""Recovers a log's end after a stop: what is kept, what is truncated, what is refused.

Below the recovery point everything was flushed. Headers there are walked only if an index or the
producers' state needs it, and a bad one is damage. Above it every batch's checksum is verified.
"""

from dataclasses import dataclass, field

from ottla.record.header import HEADER_SIZE, BatchHeader, computed_crc, read_header
from ottla.storage.disk.errors import LogCorrupt, fsync_error
from ottla.storage.disk.filesystem import File
from ottla.storage.recovery.damage import is_unwritten, valid_batch_behind
from ottla.storage.recovery.leftovers import note_failed_flush
from ottla.storage.recovery.replay import Replay
from ottla.storage.segment.batch_walk import BadHeader, header_at, header_fault, walk
from ottla.storage.segment.segment import RELATIVE_OFFSET_MAX, Segment

# Larger reads were slower: what is read should still be in the processor's cache when its
# checksum is computed (10 GB: 2.8 s with 1 MiB, 4.3 s with 4 MiB).
_CHUNK_BYTES = 1 << 20
_RESTORE = (
    "Flushed records are damaged, so nothing was cut. "
    "Restore the file from a copy or a replica, or delete the partition."
)


@dataclass(slots=True)
class Recovery:
    """The findings of a recovery. `notes` are sentences for the broker's log."""

    scanned_bytes: int = 0
    truncated_bytes: int = 0
    notes: list[str] = field(default_factory=list)
    # Sentences about flushed records that are lost, if a damaged log was salvaged.
    salvaged: list[str] = field(default_factory=list)
    # Whether a flush has failed, so that the unflushed end may exist only in the page cache.
    write_again: bool = False
    # Whether any unflushed page may be missing, even one before a page that was written.
    is_lossy: bool = False
    # Set if pages may be missing and only flushed records were acknowledged: the offset up to which
    # the log is known to be flushed. None if no page can be missing.
    kept_to: int | None = None
    # The leader epoch of the batches so far.
    leader_epoch: int = -1

    @property
    def may_lack_pages(self) -> bool:
        """Whether any page that the last run wrote and did not flush may be missing."""
        return self.is_lossy or self.kept_to is not None


def recover(
    segments: list[Segment],
    replay: Replay,
    recovery_point: int,
    *,
    check_end: bool,
    write_again: bool = False,
    is_lossy: bool = False,
    kept_to: int | None = None,
) -> Recovery:
    """Read `segments` (by base offset) from where `replay` must begin; truncate the torn end.

    Segments after a truncation are removed, with their files. With `check_end` a log that ends
    below its recovery point is refused. With `write_again` all bytes above the recovery point are
    written again, in place, before they are read. `is_lossy` says that a power cut took unflushed
    records and that the cluster knows it: the log is truncated at the first bad batch above the
    recovery point. `kept_to` says that a power cut took unflushed records, none of them
    acknowledged: all below this offset was flushed, however old the recovery point is. Raises
    LogCorrupt, OSError.
    """
    result = Recovery(write_again=write_again, is_lossy=is_lossy, kept_to=kept_to)
    number = 0
    while number < len(segments):
        segment = segments[number]
        following = segments[number + 1].base_offset if number + 1 < len(segments) else None
        # Includes the segment that ends at the recovery point: a power cut may have undone an
        # unflushed truncation.
        if following is None or following >= recovery_point or following > replay.next_offset:
            whole = _recover_segment(segment, replay, recovery_point, segments[number:], result)
            end = max(replay.next_offset, segment.base_offset)
            if following is not None:
                # Compaction leaves gaps. A segment that overlaps the next one above the recovery
                # point shows that a truncation was undone; the next one is older.
                is_gap = end < following <= recovery_point
                is_undone = end > following >= recovery_point and result.may_lack_pages
                if end == following or (whole and (is_gap or end > following) and not is_undone):
                    segment.indexes.add_last_time()
                else:
                    _drop(segments, number + 1, result, end)
        number += 1
    last = segments[-1]
    end = max(replay.next_offset, last.base_offset)
    replay.next_offset = end
    if check_end and end < recovery_point:
        raise LogCorrupt(
            last.path(),
            last.size,
            end,
            f"the log ends here but was flushed up to offset {recovery_point}",
            _RESTORE,
        )
    return result


def _recover_segment(
    segment: Segment,
    replay: Replay,
    recovery_point: int,
    following: list[Segment],
    result: Recovery,
) -> bool:
    """Walk, then scan, one segment; return False if it was truncated."""
    size = segment.size
    try:
        segment.read_index_files()
    except (OSError, ValueError):
        segment.forget_indexes()
    # Entries above the recovery point were perhaps written for batches that were lost.
    segment.indexes.loaded = True
    _forget_entries_above(segment, recovery_point)
    if not _index_fits(segment, replay.next_offset):
        segment.forget_indexes()
    indexed = segment.indexes.offsets.last()[1]
    start = min(indexed, segment.indexes.offsets.floor(replay.next_offset)[1])
    segment.transactions.truncate_to_offset(max(replay.next_offset, segment.base_offset))
    position, offset = start, segment.base_offset
    try:
        for position, header in walk(segment.file, start, size, segment.base_offset):
            if header.base_offset >= recovery_point:
                break
            if position >= indexed:
                segment.index_again(position, header)
            replay.batch(segment, position, header)
            offset = header.last_offset + 1
            result.leader_epoch = header.leader_epoch
            position += header.size
    except BadHeader as bad:
        if offset < recovery_point:
            raise LogCorrupt(segment.path(), bad.position, offset, bad.what, _RESTORE) from None
        position = bad.position
    if result.write_again:
        segment.filesystem.rewrite(segment.path(), position)
    scan = _Scan(segment, replay, max(offset, segment.base_offset))
    scan.leader_epoch, scan.terms_rise = result.leader_epoch, result.may_lack_pages
    end = scan.run(position, size)
    result.leader_epoch = scan.leader_epoch
    result.scanned_bytes += end - position
    if end == size:
        return True
    if not result.is_lossy and not scan.is_older:
        _judge(segment, end, scan, following, result.kept_to)
    result.truncated_bytes += size - end
    result.notes.append(
        f"{segment.path()}: cut {size - end} bytes of an unfinished write at byte {end}, "
        f"offset {scan.next_offset}: {scan.fault}"
    )
    segment.file.truncate(end)
    segment.size = end
    _make_durable(segment)
    return False


def _forget_entries_above(segment: Segment, recovery_point: int) -> None:
    last_offset, position = segment.indexes.offsets.floor(recovery_point - 1)
    if position:
        segment.indexes.truncate(position + 1, last_offset + 1)
    else:
        segment.indexes.truncate(0, segment.base_offset)


def _index_fits(segment: Segment, next_offset: int) -> bool:
    """Return whether the entries where the walk begins point at the batches that they name."""
    for offset, position in (
        segment.indexes.offsets.last(),
        segment.indexes.offsets.floor(next_offset),
    ):
        if position:
            try:
                found = header_at(segment.file, position, segment.size, segment.base_offset)
            except BadHeader:
                return False
            if found.last_offset != offset:
                return False
    return True


class _Scan:
    """Reads a segment from a position by large reads, and verifies every batch's checksum."""

    def __init__(self, segment: Segment, replay: Replay, next_offset: int) -> None:
        self.segment = segment
        self.replay = replay
        self.next_offset = next_offset
        # Offsets in the indexes are relative to the segment's base, in 31 bits.
        self.offset_max = segment.base_offset + RELATIVE_OFFSET_MAX
        # Why the scan stopped, and where the bad batch claims to end.
        self.fault = ""
        self.bad_end = 0
        # Leader epochs only rise along a log. A batch of an earlier epoch had been truncated and
        # others written in its place; a power cut has undone that.
        self.terms_rise = False
        self.leader_epoch = -1
        self.is_older = False

    def run(self, position: int, size: int) -> int:
        """Scan to `size`; return where the first bad batch begins, `size` for none."""
        buffer = bytearray(min(_CHUNK_BYTES, size - position))
        file = self.segment.file
        while position < size:
            wanted = min(len(buffer), size - position)
            view = memoryview(buffer)[:wanted]
            found = file.read_into(view, position)
            taken = self._batches(buffer, found, position, size)
            if self.fault:
                return position + taken
            if taken == 0:
                needed = self._needed(buffer, found, size - position)
                if not needed:
                    return position
                buffer = bytearray(needed)
            position += taken
        return position

    def _needed(self, buffer: bytearray, found: int, room: int) -> int:
        """Return the buffer size for the batch that did not fit; 0 if there is no batch."""
        if found < HEADER_SIZE:
            self.fault, self.bad_end = f"only {found} bytes of a batch", self.segment.size
            return 0
        return min(read_header(buffer).size, room)

    def _batches(self, buffer: bytearray, found: int, file_position: int, size: int) -> int:
        """Replay the whole batches at the beginning of `buffer`; return their size in bytes."""
        # Hot: 2.2 µs per batch in addition to its checksum.
        segment, replay = self.segment, self.replay
        place = 0
        while place + HEADER_SIZE <= found:
            header = read_header(buffer, place)
            position = file_position + place
            fault = header_fault(header, size - position, self.next_offset)
            if fault is None and header.last_offset > self.offset_max:
                fault = f"base offset {header.base_offset} is too high for its segment"
            if fault is None and self.terms_rise and header.leader_epoch < self.leader_epoch:
                fault = f"leader epoch {header.leader_epoch} after {self.leader_epoch}"
                self.is_older = True
            if fault is not None:
                self._stop(fault, header, position)
                return place
            batch_size = header.batch_length + 12
            if place + batch_size > found:
                return place
            if computed_crc(buffer, place, batch_size) != header.crc:
                self._stop("checksum of the batch is wrong", header, position)
                return place
            segment.index_again(position, header)
            replay.batch(segment, position, header)
            self.next_offset = header.last_offset + 1
            self.leader_epoch = header.leader_epoch
            place += batch_size
        return place

    def _stop(self, fault: str, header: BatchHeader, position: int) -> None:
        self.fault = fault
        end = position + header.size
        self.bad_end = end if position < end <= self.segment.size else self.segment.size


def _judge(
    segment: Segment, end: int, scan: _Scan, following: list[Segment], kept_to: int | None
) -> None:
    """Raise LogCorrupt if the bad batch at `end` is not a torn end of the log."""
    file: File = segment.file
    # Closed segments are flushed one after the other, but the system may write them in any order.
    may_lack = kept_to is not None and kept_to <= scan.next_offset
    if is_unwritten(file, end, scan.bad_end, segment.size, anywhere=may_lack):
        return
    behind = valid_batch_behind(file, end, segment.size, segment.base_offset)
    if behind < 0 and (may_lack or not any(later.size for later in following[1:])):
        return
    where = f"at byte {behind}" if behind >= 0 else "in the next segment"
    raise LogCorrupt(
        segment.path(),
        end,
        scan.next_offset,
        f"{scan.fault}, but valid batches stand {where}",
        _RESTORE,
    )


def _make_durable(truncated: Segment) -> None:
    """Flush a truncation, so that no power cut undoes it after new records took that place."""
    try:
        truncated.file.fsync()
        truncated.filesystem.fsync_directory(truncated.folder)
    except OSError as error:
        note_failed_flush(truncated.filesystem, truncated.folder)
        raise fsync_error(error, truncated.path()) from error


def _drop(segments: list[Segment], keep: int, result: Recovery, end: int) -> None:
    """Remove all but the first `keep` segments, because the log ends before them."""
    for segment in segments[keep:]:
        result.truncated_bytes += segment.size
        result.notes.append(f"{segment.path()}: removed, the log before it ends at offset {end}")
        segment.close()
        segment.remove_files()
    del segments[keep:]
    _make_durable(segments[-1])
