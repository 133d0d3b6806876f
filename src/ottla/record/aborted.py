"""Finds the batches that read_committed consumers skip (KIP-98).

A fetch response lists aborted transactions by producer id and first offset. A producer's
transactional batches are aborted from that offset until its next abort marker. Batches, including
markers, must be passed in offset order.
"""

import heapq
from collections.abc import Iterable

from ottla.record.compression import Buffer
from ottla.record.control import ControlType, read_marker
from ottla.record.header import BatchHeader
from ottla.record.reader import records


class AbortedTransactions:
    """Tracks the aborted transactions of one partition along its batches."""

    def __init__(self) -> None:
        self._coming: list[tuple[int, int]] = []  # (first offset, producer id), a heap.
        # Fetch responses repeat earlier entries, and an ended transaction must stay ended.
        self._known: set[tuple[int, int]] = set()
        self._open: set[int] = set()

    def learn(self, aborted: Iterable[tuple[int, int]]) -> None:
        """Add a fetch response's (producer id, first offset) pairs."""
        for producer_id, first_offset in aborted:
            if (first_offset, producer_id) not in self._known:
                self._known.add((first_offset, producer_id))
                heapq.heappush(self._coming, (first_offset, producer_id))

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether the data batch with this header belongs to an aborted transaction."""
        if not header.is_transactional:
            return False
        self._begin(header.last_offset)
        return header.producer_id in self._open

    def on_control_batch(
        self, buffer: Buffer, position: int, header: BatchHeader, *, check_crc: bool
    ) -> None:
        """End a transaction if the control batch at `position` ends it. Raises CorruptBatch."""
        # A transaction may have begun since the last data batch.
        self._begin(header.last_offset)
        for record in records(buffer, position, header, check_crc=check_crc):
            marker = read_marker(record)
            if marker is not None and marker.control_type is ControlType.ABORT:
                self._open.discard(header.producer_id)

    def _begin(self, last_offset: int) -> None:
        while self._coming and self._coming[0][0] <= last_offset:
            self._open.add(heapq.heappop(self._coming)[1])
