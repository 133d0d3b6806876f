"""Finding records by time: from the time index to a batch, then to the record inside it."""

from typing import NamedTuple

from ottla.record.codec import LONG_MIN
from ottla.record.header import BatchHeader
from ottla.record.reader import check_batch, section
from ottla.record.walk import first_since
from ottla.storage.disk.errors import storage_error
from ottla.storage.log.log import Log
from ottla.storage.segment.batch_walk import BadHeader, walk
from ottla.storage.segment.segment import Segment

# The most that a lookup decompresses of one segment's batches whose headers promise a newer record
# than they have. Clients write these headers, and kilobytes of batches expand to 32 MiB. After that
# the headers are believed, so that a reader begins a little early.
_EXPANDED_BYTES_MAX = 64 << 20


class TimestampOffset(NamedTuple):
    """A record's timestamp in ms, its offset and its leader epoch (-1 if unknown)."""

    timestamp: int
    offset: int
    leader_epoch: int


def offset_for_timestamp(log: Log, timestamp: int) -> TimestampOffset | None:
    """Return the first record at or after `timestamp` ms; None if there is none.

    Raises StorageError.
    """
    for segment in log.segments.as_list():
        if segment.known_max_timestamp() < timestamp:
            continue
        found = _search(segment, timestamp, log.log_start_offset)
        if found is not None:
            return TimestampOffset(*found, log.leader_epochs.epoch_of(found[1]))
    return None


def max_timestamp_offset(log: Log) -> TimestampOffset | None:
    """Return the first record with the log's greatest timestamp; None for an empty log."""
    best: Segment | None = None
    for segment in log.segments.as_list():
        if segment.size and (
            best is None or segment.known_max_timestamp() > best.known_max_timestamp()
        ):
            best = segment
    if best is None:
        return None
    found = _search(best, best.known_max_timestamp(), log.log_start_offset)
    return None if found is None else TimestampOffset(*found, log.leader_epochs.epoch_of(found[1]))


def _search(segment: Segment, timestamp: int, offset_min: int) -> tuple[int, int] | None:
    offset = segment.offset_before(timestamp)
    position = segment.position_of(max(offset, offset_min, segment.base_offset))
    expanded_bytes = 0
    try:
        for place, header in walk(segment.file, position, segment.size, segment.base_offset):
            if header.max_timestamp < timestamp or header.last_offset < offset_min:
                continue
            if expanded_bytes > _EXPANDED_BYTES_MAX:
                return header.max_timestamp, max(header.base_offset, offset_min)
            expanded = _expanded(segment, place, header)
            found = _in_batch(expanded, header, timestamp, offset_min)
            if found is not None:
                return found
            expanded_bytes += len(expanded)
    except BadHeader as bad:
        raise segment.corrupt(bad) from None
    except OSError as error:
        raise storage_error(error, segment.path(), "read") from error
    return None


def _expanded(segment: Segment, position: int, header: BatchHeader) -> bytes:
    batch = segment.file.pread(header.size, position)
    check_batch(batch, 0, header)
    return section(batch, 0, header)


def _in_batch(
    expanded: bytes, header: BatchHeader, timestamp: int, offset_min: int
) -> tuple[int, int] | None:
    is_append_time = header.is_log_append_time
    found, delta = first_since(
        expanded,
        header.record_count,
        header.base_timestamp,
        LONG_MIN if is_append_time else timestamp,
        offset_min - header.base_offset,
    )
    if delta < 0:
        return None
    return header.max_timestamp if is_append_time else found, header.base_offset + delta
