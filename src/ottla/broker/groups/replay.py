"""Reads a partition of `__consumer_offsets` back: the last value of each of its keys."""

import asyncio

from ottla.broker.partition import Partition
from ottla.record.reader import batches, records
from ottla.storage.log import Log

# Below this a read is not worth a thread.
_SMALL_BYTES = 1_048_576


async def last_values(partition: Partition, chunk_bytes: int) -> dict[bytes, bytes | None]:
    """The last value of each key up to the log's end, tombstones as None.

    Only these matter for the state, so that a long log is decoded once per key. Reads in a thread,
    `chunk_bytes` at a time, unless the log is small. Raises OttlaError where it cannot be read.
    """
    log = partition.log
    end = log.log_end_offset
    values: dict[bytes, bytes | None] = {}
    if log.size_bytes <= _SMALL_BYTES:
        offset = log.log_start_offset
        while offset < end:
            offset = _read_chunk(log, offset, end, chunk_bytes, values)
        return values
    loop = asyncio.get_running_loop()
    offset = log.log_start_offset
    while offset < end:
        offset = await loop.run_in_executor(
            None, _read_chunk, log, offset, end, chunk_bytes, values
        )
    return values


def _read_chunk(
    log: Log, offset: int, end: int, chunk_bytes: int, values: dict[bytes, bytes | None]
) -> int:
    """Take in the batches from `offset` on; return the offset after them."""
    located = log.read(offset, chunk_bytes, max_offset=end)
    buffer = located.file.pread(located.size, located.position)
    for position, header in batches(buffer):
        if not header.is_control:
            for record in records(buffer, position, header):
                if record.key is not None:
                    values[record.key] = record.value
        offset = header.last_offset + 1
    return offset
