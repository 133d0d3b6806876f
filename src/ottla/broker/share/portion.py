"""Reads bytes of a partition's log for share groups, and the offsets of their batches.

Acquiring records needs the headers of the batches, so the bytes are read into memory and not sent
from the file. A portion is small, and mostly in the page cache.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings.tables.validators import Reset
from ottla.broker.partitions.partition import Partition
from ottla.record.header import BatchHeader
from ottla.record.reader import CorruptBatch, batches
from ottla.share.deliveries import Acquired, Found
from ottla.storage.disk.errors import storage_error
from ottla.storage.index.transaction_index import AbortedTransaction
from ottla.storage.log.timestamps import offset_for_timestamp


def first_offset(partition: Partition, reset: Reset, now_ms: int) -> int:
    """Return the offset that `reset`, the group's share.auto.offset.reset, means at `now_ms`."""
    if reset.to_start:
        return partition.log_start_offset
    if reset.back_ms is not None:
        found = offset_for_timestamp(partition.log, now_ms - reset.back_ms)
        if found is not None:
            return min(found.offset, partition.high_watermark)
    return partition.high_watermark


# The most bytes read from a partition at a time, unless a single batch is larger.
PORTION_BYTES = 1 << 20
_ANY_SIZE = 1 << 31


@dataclass(frozen=True, slots=True)
class Portion:
    """Whole batches of a log; `spans` has the start and end position of each in `data`."""

    data: bytes
    found: list[Found]
    spans: list[tuple[int, int]]

    def covering(self, acquired: list[Acquired]) -> bytes:
        """Return the bytes from the first batch with acquired records to the last such batch."""
        first, last = acquired[0].first, acquired[-1].last
        wanted = [
            span
            for batch, span in zip(self.found, self.spans, strict=True)
            if batch.last >= first and batch.first <= last
        ]
        return self.data[wanted[0][0] : wanted[-1][1]]


def read_portion(partition: Partition, offset: int, max_bytes: int, *, committed: bool) -> Portion:
    """Read batches from `offset` on, up to the high watermark; the result may be empty.

    With `committed`, read up to the last stable offset, and mark aborted batches as not readable.
    Raises OttlaError (CORRUPT_MESSAGE, KAFKA_STORAGE_ERROR).
    """
    log = partition.log
    end = partition.last_stable_offset if committed else partition.high_watermark
    if offset >= end:
        return Portion(b"", [], [])
    located = log.read(offset, min(max_bytes, PORTION_BYTES), max_offset=end)
    if located.size == 0:
        return Portion(b"", [], [])
    try:
        data = bytes(located.file.pread(located.size, located.position))
    except OSError as error:
        raise storage_error(error, located.file.path, "read") from error
    aborted = log.segments.aborted_transactions(offset, end) if committed else []
    found: list[Found] = []
    spans: list[tuple[int, int]] = []
    try:
        for position, header in batches(data):
            readable = not header.is_control and not _is_aborted(header, aborted)
            found.append(Found(header.base_offset, header.last_offset, readable))
            spans.append((position, position + header.size))
    except CorruptBatch as error:
        raise OttlaError(
            ErrorCode.CORRUPT_MESSAGE, f"{partition.topic_partition}: {error}"
        ) from error
    return Portion(data, found, spans)


def count_bytes(
    partition: Partition, spans: Iterable[tuple[int, int | None]], enough: int, *, committed: bool
) -> int:
    """Count the bytes of the batches that contain the offsets in `spans`, each batch once.

    Counting stops at `enough`. Spans are first and last offsets in ascending order; None as last
    offset means the end of the log. Raises OttlaError.
    """
    end = partition.last_stable_offset if committed else partition.high_watermark
    counted, file, upto = 0, None, 0
    for first, last in spans:
        if counted >= enough or first >= end:
            break
        limit = end if last is None else min(last + 1, end)
        located = partition.log.read(first, _ANY_SIZE, max_offset=limit)
        start = max(located.position, upto) if located.file is file else located.position
        file, upto = located.file, located.position + located.size
        counted += max(0, upto - start)
    return counted


def _is_aborted(header: BatchHeader, aborted: list[AbortedTransaction]) -> bool:
    return header.is_transactional and any(
        each.producer_id == header.producer_id
        and each.first_offset <= header.base_offset <= each.last_offset
        for each in aborted
    )
