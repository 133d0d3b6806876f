"""Selects the visible records of fetched batches."""

from collections.abc import Sequence

from ottla.record.aborted import AbortedTransactions
from ottla.record.codec import Record
from ottla.record.reader import batches, records
from ottla.wire.messages.fetch import AbortedTransaction


class Chunk:
    """One partition's part of a fetch answer, decoded batch by batch as it is consumed.

    With `aborted` not None (read_committed), batches of aborted transactions are left out.
    Control batches are never shown.
    """

    __slots__ = ("_aborted", "_batches", "_check_crc", "buffer", "next_offset")

    def __init__(
        self,
        buffer: memoryview,
        aborted: Sequence[AbortedTransaction] | None,
        *,
        check_crc: bool,
    ) -> None:
        self.buffer = buffer
        self._batches = batches(buffer)
        self._check_crc = check_crc
        self._aborted: AbortedTransactions | None = None
        if aborted is not None:
            self._aborted = AbortedTransactions()
            self._aborted.learn((entry.producer_id, entry.first_offset) for entry in aborted)
        # The offset after the last examined batch.
        self.next_offset = -1

    def take(self, from_offset: int) -> list[Record] | None:
        """Return records of the next batch at or after `from_offset`; None at the end of the chunk.

        An empty list is a batch without visible records. Raises CorruptBatch.
        """
        entry = next(self._batches, None)
        if entry is None:
            return None
        position, header = entry
        self.next_offset = header.last_offset + 1
        aborted = self._aborted
        if header.is_control:
            if aborted is not None:
                aborted.on_control_batch(self.buffer, position, header, check_crc=self._check_crc)
            return []
        if aborted is not None and aborted.is_aborted(header):
            return []
        if header.last_offset < from_offset:
            return []
        found = records(self.buffer, position, header, check_crc=self._check_crc)
        if header.base_offset < from_offset:
            return [record for record in found if record.offset >= from_offset]
        return found
