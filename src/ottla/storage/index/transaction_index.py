"""A segment's transaction index: the aborted transactions whose marker it contains.

Format (Kafka's `.txnindex`): entries of 34 bytes, big-endian: version 0 (int16), producer id, first
offset, last offset (the marker's), last stable offset at the time of abort (int64 each).
"""

from struct import Struct
from typing import NamedTuple

ENTRY_SIZE = 34
_ENTRY = Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    """One aborted transaction; its offsets are inclusive.

    A reader below `last_stable_offset` need not read later entries.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """Aborted transactions in order of their markers."""

    __slots__ = ("entries",)

    def __init__(self, entries: list[AbortedTransaction] | None = None) -> None:
        self.entries = entries if entries is not None else []

    def __len__(self) -> int:
        return len(self.entries)

    def append(self, aborted: AbortedTransaction) -> None:
        """Add the transaction whose abort marker was just appended."""
        assert not self.entries or self.entries[-1].last_offset < aborted.last_offset
        self.entries.append(aborted)

    def overlapping(self, start: int, end: int) -> tuple[list[AbortedTransaction], bool]:
        """Return the transactions with records in [start, end), and whether the result is complete.

        It is not if later segments may have more of them.
        """
        found = []
        for entry in self.entries:
            if entry.last_offset >= start and entry.first_offset < end:
                found.append(entry)
            if entry.last_stable_offset >= end:
                return found, True
        return found, False

    def truncate_to_offset(self, offset: int) -> None:
        """Forget transactions whose marker is at or above `offset`."""
        while self.entries and self.entries[-1].last_offset >= offset:
            self.entries.pop()

    def encode(self) -> bytes:
        """The file's bytes; empty if nothing was aborted (Kafka then has no file)."""
        return b"".join([_ENTRY.pack(0, *entry) for entry in self.entries])

    @classmethod
    def decode(cls, encoded: bytes) -> "TransactionIndex":
        """Read a file's bytes. Raises ValueError if they are not of version 0."""
        if len(encoded) % ENTRY_SIZE:
            raise ValueError(f"{len(encoded)} bytes are no whole number of entries")
        entries: list[AbortedTransaction] = []
        for version, *fields in _ENTRY.iter_unpack(encoded):
            entry = AbortedTransaction(*fields)
            if version != 0 or entry.first_offset > entry.last_offset:
                raise ValueError("an entry is not of version 0")
            if entries and entries[-1].last_offset >= entry.last_offset:
                raise ValueError("entries are out of order")
            entries.append(entry)
        return cls(entries)
