"""A segment's time index: the greatest timestamp seen up to an offset, one entry per few KiB.

Format (Kafka's `.timeindex`): entries of 12 bytes, big-endian: timestamp in milliseconds
(int64), last offset of the batch that carries it relative to the base offset (int32).
"""

import sys
from array import array
from bisect import bisect_right

ENTRY_SIZE = 12
_SWAP = sys.byteorder == "little"


class TimeIndex:
    """The entries of one time index, in order.

    Entries store relative offsets; the methods take and return absolute ones.
    """

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
        """Return whether `count` more entries fit."""
        return len(self.timestamps) + count <= self.entries_max - 1

    def append(self, timestamp: int, offset: int) -> None:
        """Add an entry: `timestamp` is the greatest one up to `offset`.

        It is ignored unless it exceeds that of the last entry.
        """
        timestamps = self.timestamps
        if timestamp < 0 or (timestamps and timestamp <= timestamps[-1]):
            return
        timestamps.append(timestamp)
        self.relative_offsets.append(offset - self.base_offset)

    def floor(self, timestamp: int) -> tuple[int, int]:
        """Return (timestamp, offset) of the last entry up to `timestamp`; (-1, base) if none.

        Raises ValueError if the entry and its neighbours are out of order.
        """
        timestamps, offsets = self.timestamps, self.relative_offsets
        slot = bisect_right(timestamps, timestamp) - 1
        if slot < 0:
            return -1, self.base_offset
        for place in range(max(1, slot), min(slot + 2, len(timestamps))):
            if timestamps[place - 1] >= timestamps[place] or offsets[place - 1] > offsets[place]:
                raise ValueError("entries are out of order")
        return timestamps[slot], self.base_offset + offsets[slot]

    def last(self) -> tuple[int, int]:
        """Return (timestamp, offset) of the last entry; (-1, base offset) if there is none."""
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
        timestamps, relative = self.timestamps[first_entry:], self.relative_offsets[first_entry:]
        if _SWAP:
            timestamps.byteswap()
            relative.byteswap()
        # In thirds of an entry: two words of the timestamp, one of the offset.
        halves, words = array("i", timestamps.tobytes()), array("i", bytes(12 * len(relative)))
        words[0::3], words[1::3], words[2::3] = halves[0::2], halves[1::2], relative
        return words.tobytes()

    @classmethod
    def decode(cls, encoded: bytes, base_offset: int, bytes_max: int) -> "TimeIndex":
        """Read a file's bytes, without the zeros that may fill its end. Raises ValueError.

        The order of the entries is not checked, since the event loop would be held for long:
        `floor` checks those that it uses.
        """
        # Hot: 6 ms for 262,144 entries, as a segment of 1 GiB has with one entry per 4 KiB.
        if len(encoded) % ENTRY_SIZE:
            raise ValueError(f"{len(encoded)} bytes are no whole number of entries")
        index = cls(base_offset, bytes_max)
        if len(encoded) > ENTRY_SIZE and encoded.count(0) == len(encoded):
            return index
        words = array("i", encoded)
        halves = array("i", bytes(8 * (len(words) // 3)))
        halves[0::2], halves[1::2] = words[0::3], words[1::3]
        timestamps, relative = array("q", halves.tobytes()), words[2::3]
        if _SWAP:
            timestamps.byteswap()
            relative.byteswap()
        if len(timestamps) > 1 and timestamps[-1] == relative[-1] == 0:
            used = timestamps.index(0, 1)
            del timestamps[used:], relative[used:]
        if timestamps and (timestamps[0] < 0 or relative[0] < 0):
            raise ValueError("an entry is negative")
        index.timestamps, index.relative_offsets = timestamps, relative
        return index
