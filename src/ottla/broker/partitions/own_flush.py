"""Waits for the flush of the own log, if only that is missing to commit its end.

With group commit a record that was acknowledged with acks=1 is committed by the next flush. A
client that asks for the end right after its acknowledgement is to find the record below it.
"""

import asyncio
from collections.abc import Iterable

from ottla.base.errors import ErrorCode
from ottla.broker.partitions.partition import Partition
from ottla.broker.runtime.purgatory import Purgatory

# A flush that takes longer is not waited for: the disk is stuck.
_PATIENCE_MS = 1_000


async def until_flushed(partitions: Iterable[Partition], purgatory: Purgatory) -> None:
    """Wait until everything appended so far is flushed, in partitions where that commits it."""
    waiting = [partition for partition in partitions if partition.is_committed_by_flush]
    if not waiting:
        return
    flushed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    left = len(waiting)

    def finish() -> None:
        if not flushed.done():
            flushed.set_result(None)

    def on_reached(_code: ErrorCode) -> None:
        nonlocal left
        left -= 1
        if not left:
            finish()

    deadline = purgatory.schedule(_PATIENCE_MS, finish)
    for partition in waiting:
        partition.on_high_watermark(partition.log_end_offset, on_reached)
    await flushed
    purgatory.cancel(deadline)
