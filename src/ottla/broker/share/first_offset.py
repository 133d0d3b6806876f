"""The start offset of a share group in a partition that it has never read."""

from ottla.base.settings.declaration.validators import Reset
from ottla.broker.partitions.partition import Partition
from ottla.storage.log.timestamps import offset_for_timestamp


def first_offset(partition: Partition, reset: Reset, now_ms: int) -> int:
    """The offset that `reset`, the group's share.auto.offset.reset, gives at `now_ms`."""
    if reset.to_start:
        return partition.log_start_offset
    if reset.back_ms is not None:
        found = offset_for_timestamp(partition.log, now_ms - reset.back_ms)
        if found is not None:
            return min(found.offset, partition.high_watermark)
    return partition.high_watermark
