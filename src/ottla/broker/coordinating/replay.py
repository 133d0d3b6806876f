"""Reads a partition of coordinators' records back, and of it the last value of each key.

Records of a transaction count when their commit marker comes, unless a later one of the same key
stands behind them; what has no marker yet is told apart.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.broker.partition import Partition
from ottla.record.control import ControlType, read_marker
from ottla.record.header import BatchHeader
from ottla.record.reader import batches, records
from ottla.storage.log import Log

# Below this a read is not worth a thread.
_SMALL_BYTES = 1_048_576

# Takes in whole batches, and returns the offset after them, -1 for none.
Take = Callable[[bytes | memoryview], int]


class Written(NamedTuple):
    """A value and the offset of its record; None for a tombstone."""

    offset: int
    value: bytes | None


@dataclass(slots=True)
class Replayed:
    """What a partition holds. `pending` are records of transactions without a marker, in order."""

    written: dict[bytes, Written] = field(default_factory=dict)
    pending: dict[int, list[tuple[bytes, Written]]] = field(default_factory=dict)

    def take(self, buffer: bytes | memoryview) -> int:
        """Take in whole batches; return the offset after them, -1 for none."""
        following = -1
        for position, header in batches(buffer):
            following = header.last_offset + 1
            if header.is_control:
                self._end(buffer, position, header)
                continue
            for record in records(buffer, position, header):
                if record.key is None:
                    continue
                written = Written(record.offset, record.value)
                if header.is_transactional:
                    waiting = self.pending.setdefault(header.producer_id, [])
                    waiting.append((record.key, written))
                else:
                    self.written[record.key] = written
        return following

    def _end(self, buffer: bytes | memoryview, position: int, header: BatchHeader) -> None:
        for record in records(buffer, position, header):
            marker = read_marker(record)
            if marker is None:
                continue
            ended = self.pending.pop(header.producer_id, [])
            if marker.control_type is ControlType.COMMIT:
                for key, written in ended:
                    if not self.is_overtaken(key, written):
                        self.written[key] = written

    def in_order(self) -> list[tuple[int, bytes, Written]]:
        """(producer id, key, value) of what is pending, in the order of the log."""
        found = [
            (producer_id, key, written)
            for producer_id, waiting in self.pending.items()
            for key, written in waiting
        ]
        return sorted(found, key=lambda each: each[2].offset)

    def is_overtaken(self, key: bytes, written: Written) -> bool:
        """Whether a later record of the key counts already."""
        found = self.written.get(key)
        return found is not None and found.offset > written.offset


async def replay(partition: Partition, chunk_bytes: int) -> Replayed:
    """The last value of each key up to the log's end, and what is pending there.

    Only these matter for the state, so that a long log is decoded once per key. Raises as
    `read_back`.
    """
    found = Replayed()
    await read_back(partition.log, chunk_bytes, found.take)
    return found


async def last_values(partition: Partition, chunk_bytes: int) -> dict[bytes, bytes | None]:
    """`replay` of a partition in which nothing is pending, tombstones as None."""
    found = await replay(partition, chunk_bytes)
    return {key: written.value for key, written in found.written.items()}


async def read_back(log: Log, chunk_bytes: int, take: Take) -> None:
    """Give `take` all of a log, in order, `chunk_bytes` at a time; in a thread unless it is small.

    Raises OttlaError where it cannot be read, and what `take` raises.
    """
    end = log.log_end_offset
    offset = log.log_start_offset
    if log.size_bytes <= _SMALL_BYTES:
        while offset < end:
            offset = _read_chunk(log, offset, end, chunk_bytes, take)
        return
    loop = asyncio.get_running_loop()
    while offset < end:
        offset = await loop.run_in_executor(None, _read_chunk, log, offset, end, chunk_bytes, take)


def _read_chunk(log: Log, offset: int, end: int, chunk_bytes: int, take: Take) -> int:
    """Take in the batches from `offset` on; return the offset after them."""
    located = log.read(offset, chunk_bytes, max_offset=end)
    following = take(located.file.pread(located.size, located.position))
    # Behind the last batch there may be nothing, where the log was compacted.
    return following if following > offset else end
