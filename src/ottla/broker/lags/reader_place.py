"""Finds the places of readers in partitions that this broker leads."""

from typing import Final, NamedTuple

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.broker.partitions.partition import Partition
from ottla.record.header import HEADER_SIZE, LOG_APPEND_TIME_FLAG, read_header
from ottla.storage.log.retention import deadline

UNKNOWN: Final = -1
# How long what was found of a record holds, for the readers that still stand before it.
_HOLDS_MS: Final = 30_000


class ReaderPlace(NamedTuple):
    """The place of a reader: see `wire.messages.log_cleaning.ReaderPlace`."""

    log_start_offset: int
    high_watermark: int
    since_ms: int
    left_ms: int


class _Record(NamedTuple):
    """The timestamp of a record, and the time of day at which retention may delete it."""

    since_ms: int
    deleted_at_ms: int


class Places:
    """Finds places. A record that was found is remembered for some seconds, by its offset."""

    def __init__(self) -> None:
        # By partition, offset and whether retention waits for the reader; begun at `_began_ms`.
        self._known: dict[tuple[TopicPartition, int, bool], _Record] = {}
        self._began_ms = 0

    def find(self, partition: Partition, offset: int, group_id: str, now_ms: int) -> ReaderPlace:
        """Return the place of a reader that has read everything below `offset`.

        Reads one batch header if something is unread, as a fetch of that reader would. Raises
        OttlaError if this broker does not lead the partition or cannot read its log.
        """
        partition.check_led()
        partition.check_readable()
        start, end = partition.log_start_offset, partition.high_watermark
        first = max(offset, start)
        if first >= end:
            return ReaderPlace(start, end, UNKNOWN, UNKNOWN)
        if not 0 <= now_ms - self._began_ms < _HOLDS_MS:
            self._known, self._began_ms = {}, now_ms
        key = partition.topic_partition, first, group_id in partition.config.hold_groups
        record = self._known.get(key)
        if record is None:
            record = self._known[key] = _found(partition, first, end, now_ms, is_held=key[2])
        left_ms = record.deleted_at_ms
        if left_ms != UNKNOWN:
            left_ms = max(0, left_ms - now_ms)
        return ReaderPlace(start, end, record.since_ms, left_ms)


def _found(partition: Partition, offset: int, end: int, now_ms: int, *, is_held: bool) -> _Record:
    log = partition.log
    try:
        found = deadline(
            log.segments.as_list(),
            log.config,
            offset,
            log_end_offset=log.log_end_offset,
            now_ms=now_ms,
            is_held=is_held,
        )
        deleted_at_ms = UNKNOWN if found.left_ms is None else now_ms + found.left_ms
        located = log.read(offset, 1, max_offset=end)
        if located.size < HEADER_SIZE:
            return _Record(UNKNOWN, deleted_at_ms)
        header = read_header(memoryview(located.file.pread(HEADER_SIZE, located.position)))
    except (OSError, OttlaError):
        return _Record(UNKNOWN, UNKNOWN)
    appended = header.attributes & LOG_APPEND_TIME_FLAG
    return _Record(header.max_timestamp if appended else header.base_timestamp, deleted_at_ms)
