"""How transactions ended, by the markers that stand further on in a log. Pure.

Files name aborted transactions in an index, which a broker may write later than the log itself.
The markers in the log are what the index is made from.
"""

from collections.abc import Iterator

from ottla.record.control import ControlType, read_marker
from ottla.record.header import BatchHeader
from ottla.record.reader import records

Batch = tuple[bytes, int, BatchHeader]


class TransactionOutcomes:
    """Reads ahead over the batches `ahead`, as far as it is asked."""

    def __init__(self, ahead: Iterator[Batch]) -> None:
        self._ahead = ahead
        # Markers of each producer that are ahead: (offset, is an abort).
        self._markers: dict[int, list[tuple[int, bool]]] = {}
        self._told: set[tuple[int, int]] = set()

    def aborted_at(self, header: BatchHeader) -> tuple[int, int] | None:
        """(producer id, first offset) where the batch begins an aborted transaction here.

        Raises LookupError where the log ends before the transaction's marker.
        """
        marker, is_abort = self._marker(header.producer_id, header.last_offset)
        key = (header.producer_id, marker)
        if not is_abort or key in self._told:
            return None
        self._told.add(key)
        return header.producer_id, header.base_offset

    def _marker(self, producer_id: int, offset: int) -> tuple[int, bool]:
        while True:
            for marker in self._markers.get(producer_id, ()):
                if marker[0] > offset:
                    return marker
            self._read_marker()

    def _read_marker(self) -> None:
        """Read on to the next marker."""
        for buffer, place, header in self._ahead:
            if header.is_control:
                for record in records(buffer, place, header, check_crc=True):
                    marker = read_marker(record)
                    if marker is not None:
                        is_abort = marker.control_type is ControlType.ABORT
                        known = self._markers.setdefault(header.producer_id, [])
                        known.append((header.last_offset, is_abort))
                        return
        raise LookupError("the log ends before the marker")
