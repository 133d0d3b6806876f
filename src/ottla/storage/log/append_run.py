"""Appends several batches of one producer with one write: all of them or none.

The write is most of the cost of an append, and half of that is the system call. Batches that need
more than a write (a roll, a duplicate, a sequence out of order) are left to `Log.append_as_leader`,
which takes one batch at a time.
"""

from collections.abc import Sequence

from ottla.record.header import LENGTH_OVERHEAD, BatchHeader
from ottla.storage.disk.reserve import DiskUse
from ottla.storage.log.log import PLACE, Log
from ottla.storage.segment.segment import RELATIVE_OFFSET_MAX

_RECORDS = DiskUse.RECORDS


def can_append_run(log: Log, headers: Sequence[BatchHeader], now_ms: int) -> bool:
    """Return whether the batches can be appended with one write. Raises OttlaError.

    They must be data batches outside of a transaction: either consecutive batches of one idempotent
    producer, or batches without a producer id.
    """
    active, config, first = log.segments.active, log.config, headers[0]
    indexes = active.indexes
    if log.offline or active.size == 0:
        return False
    count = len(headers)
    size = records = 0
    newest = first.max_timestamp
    for header in headers:
        size += header.batch_length + LENGTH_OVERHEAD
        records += header.last_offset_delta + 1
        if header.max_timestamp > newest:
            newest = header.max_timestamp
    if (
        size > config.segment_bytes - active.size
        or log.log_end_offset + records > active.base_offset + RELATIVE_OFFSET_MAX
        or not indexes.offsets.has_room(count)
        or not indexes.times.has_room(count)
        or log.is_old(newest, now_ms)
        or (log.reserve is not None and not log.reserve.allows(size, now_ms, _RECORDS))
    ):
        return False
    return first.producer_id < 0 or (
        first.producer_id in log.producers.entries and log.producers.check(first) is None
    )


# Hot: once per run, its loops once per batch.
def append_run(
    log: Log,
    batches: Sequence[memoryview],
    headers: Sequence[BatchHeader],
    leader_epoch: int,
) -> int:
    """Assign the next offsets to the batches, write them, and return the first offset.

    `can_append_run` must have returned True. The batches are patched in place. Raises StorageError;
    then none of them is in the log.
    """
    first_offset = next_offset = log.log_end_offset
    pack = PLACE.pack_into
    for batch, header in zip(batches, headers, strict=True):
        pack(batch, 0, next_offset, header.batch_length, leader_epoch)
        next_offset += header.last_offset_delta + 1
    log.segments.active.append_many(batches, headers, first_offset)
    if leader_epoch != log.leader_epochs.latest:
        log.leader_epochs.assign(leader_epoch, first_offset)
    log.log_end_offset = next_offset
    if headers[0].producer_id >= 0:
        offset = first_offset
        for header in headers:
            log.producers.update(header, offset)
            offset += header.last_offset_delta + 1
    return first_offset
