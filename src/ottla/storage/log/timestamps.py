"""Finding records by time: from the time index to a batch, then to the record inside it."""

from typing import NamedTuple

from ottla.record.header import BatchHeader
from ottla.record.reader import records
from ottla.storage.disk.errors import storage_error
from ottla.storage.log.batch_walk import BadHeader, walk
from ottla.storage.log.log import Log
from ottla.storage.segment.segment import Segment


class TimestampOffset(NamedTuple):
    """A record's time in ms, its offset and the term it was written in (-1: unknown)."""

    timestamp: int
    offset: int
    leader_epoch: int


def offset_for_timestamp(log: Log, timestamp: int) -> TimestampOffset | None:
    """The first record at or after `timestamp` ms; None where there is none.

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
    """The first record that has the log's greatest timestamp; None for an empty log."""
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
    if not segment.indexes.loaded:
        segment.load_indexes()
    # Batches before the last entry below `timestamp` are all older.
    _, offset = segment.indexes.times.floor(timestamp - 1)
    position = segment.position_of(max(offset, offset_min, segment.base_offset))
    try:
        for place, header in walk(segment.file, position, segment.size, segment.base_offset):
            if header.max_timestamp >= timestamp and header.last_offset >= offset_min:
                found = _in_batch(segment, place, header, timestamp, offset_min)
                if found is not None:
                    return found
    except BadHeader as bad:
        raise segment.corrupt(bad) from None
    except OSError as error:
        raise storage_error(error, segment.path(), "read") from error
    return None


def _in_batch(
    segment: Segment, position: int, header: BatchHeader, timestamp: int, offset_min: int
) -> tuple[int, int] | None:
    batch = segment.file.pread(header.size, position)
    for record in records(batch, 0, header):
        if record.timestamp >= timestamp and record.offset >= offset_min:
            return record.timestamp, record.offset
    return None
