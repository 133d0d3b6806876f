"""A segment's time index: the greatest timestamp seen up to an offset, one entry per few KiB.

Format (Kafka's `.timeindex`): entries of 12 bytes, big-endian: timestamp in milliseconds
(int64), last offset of the batch that carries it relative to the base offset (int32).
"""

from array import array
from bisect import bisect_right
from struct import Struct

ENTRY_SIZE = 12
_ENTRY = Struct(">qi")


class TimeIndex:
    """Entries in order. Relative offsets inside, absolute ones outside."""

    # Invariant: both arrays are equally long; timestamps strictly, offsets weakly increasing.

    __slots__ = ("base_offset", "entries_max", "relative_offsets", "timestamps")

    def __init__(self, base_offset: int, bytes_max: int) -> None:
        self.base_offset = base_offset
        self.entries_max = bytes_max // ENTRY_SIZE
        self.timestamps = array("q")
        self.relative_offsets = array("i")

    def __len__(self) -> int:
        return len(self.timestamps)

    @property
    def is_full(self) -> bool:
        # The last place is kept for the entry that is written when the segment is closed.
        return len(self.timestamps) >= self.entries_max - 1

    def has_room(self, count: int) -> bool:
        """Whether it is not full before the last of `count` entries more."""
        return len(self.timestamps) + count <= self.entries_max - 1

    def append(self, timestamp: int, offset: int) -> None:
        """Note that `timestamp` is the greatest up to `offset`; ignored where it is not new."""
        timestamps = self.timestamps
        if timestamp < 0 or (timestamps and timestamp <= timestamps[-1]):
            return
        timestamps.append(timestamp)
        self.relative_offsets.append(offset - self.base_offset)

    def floor(self, timestamp: int) -> tuple[int, int]:
        """(timestamp, offset) of the last entry not above `timestamp`; (-1, base) before all."""
        slot = bisect_right(self.timestamps, timestamp) - 1
        if slot < 0:
            return -1, self.base_offset
        return self.timestamps[slot], self.base_offset + self.relative_offsets[slot]

    def last(self) -> tuple[int, int]:
        """(timestamp, offset) of the last entry; (-1, base offset) where there is none."""
        if not self.timestamps:
            return -1, self.base_offset
        return self.timestamps[-1], self.base_offset + self.relative_offsets[-1]

    def truncate_to_offset(self, offset: int) -> None:
        """Forget entries at or above `offset`."""
        relative = offset - self.base_offset
        while self.relative_offsets and self.relative_offsets[-1] >= relative:
            self.relative_offsets.pop()
            self.timestamps.pop()

    def encode(self, first_entry: int = 0) -> bytes:
        """The file's bytes from entry `first_entry` on."""
        pairs = zip(self.timestamps[first_entry:], self.relative_offsets[first_entry:], strict=True)
        return b"".join([_ENTRY.pack(timestamp, offset) for timestamp, offset in pairs])

    @classmethod
    def decode(cls, encoded: bytes, base_offset: int, bytes_max: int) -> "TimeIndex":
        """Read a file's bytes, without the zeros that may fill its end. Raises ValueError."""
        if len(encoded) % ENTRY_SIZE:
            raise ValueError(f"{len(encoded)} bytes are no whole number of entries")
        index = cls(base_offset, bytes_max)
        if len(encoded) > ENTRY_SIZE and not any(encoded):
            return index
        for timestamp, relative in _ENTRY.iter_unpack(encoded):
            if timestamp == 0 and relative == 0 and index.timestamps:
                break
            if index.timestamps and (
                timestamp <= index.timestamps[-1] or relative < index.relative_offsets[-1]
            ):
                raise ValueError("entries are out of order")
            if relative < 0 or timestamp < 0:
                raise ValueError("an entry is negative")
            index.timestamps.append(timestamp)
            index.relative_offsets.append(relative)
        return index
