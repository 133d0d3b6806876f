"""Appends several batches of one producer with one write: all of them or none.

The write is most of the cost of an append, and half of that is the system call. Batches that need
more than a write (a roll, a duplicate, a sequence out of order) are left to `Log.append_as_leader`,
which takes one batch at a time.
"""

from ottla.record.arrival import BatchRun
from ottla.storage.disk.reserve import DiskUse
from ottla.storage.log.log import Log
from ottla.storage.segment.segment import RELATIVE_OFFSET_MAX

_RECORDS = DiskUse.RECORDS


def can_append_run(log: Log, run: BatchRun, now_ms: int) -> bool:
    """Return whether the batches can be appended with one write. Raises OttlaError."""
    active, config, size, count = log.segments.active, log.config, run.size, len(run)
    indexes = active.indexes
    if (
        log.offline
        or active.size == 0
        or size > config.segment_bytes - active.size
        or log.log_end_offset + run.record_count > active.base_offset + RELATIVE_OFFSET_MAX
        or not indexes.offsets.has_room(count)
        or not indexes.times.has_room(count)
        or log.is_old(run.max_timestamp, now_ms)
        or (log.reserve is not None and not log.reserve.allows(size, now_ms, _RECORDS))
    ):
        return False
    producer_id = run.producer_id
    return producer_id < 0 or (
        producer_id in log.producers.entries and log.producers.check(run.first) is None
    )


# Hot: once per run.
def append_run(log: Log, run: BatchRun, leader_epoch: int) -> int:
    """Assign the next offsets to the batches, write them, and return the first offset.

    `can_append_run` must have returned True. The batches are patched in place. Raises StorageError;
    then none of them is in the log.
    """
    first_offset = log.log_end_offset
    run.place(first_offset, leader_epoch)
    log.segments.active.append_run(run, first_offset)
    if leader_epoch != log.leader_epochs.latest:
        log.leader_epochs.assign(leader_epoch, first_offset)
    log.log_end_offset = first_offset + run.record_count
    if run.producer_id >= 0:
        log.producers.update_run(run, first_offset)
    return first_offset
