"""The start offset of each leader epoch, by which replicas find where they diverge.

File (Kafka's `leader-epoch-checkpoint`, KIP-101): three kinds of lines, `0` (version), the
number of entries, then `epoch start-offset` each. Entries lost with an unclean stop are read
again from the batches, which carry their epoch.
"""

from bisect import bisect_right
from itertools import pairwise

UNKNOWN_EPOCH = -1
UNKNOWN_OFFSET = -1


class LeaderEpochs:
    """The leader epochs of a log, with their start offsets."""

    # Invariant: both lists are equally long and strictly increasing.
    # Invariant: `latest` is the last of `epochs`, -1 for none.

    __slots__ = ("changes", "epochs", "latest", "start_offsets")

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self.epochs = [epoch for epoch, _ in entries or []]
        self.start_offsets = [offset for _, offset in entries or []]
        # Read with each append, and therefore kept in addition to the list.
        self.latest = self.epochs[-1] if self.epochs else UNKNOWN_EPOCH
        # Counts alterations, so that a writer knows whether its file is the newest.
        self.changes = 0

    @property
    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self.epochs, self.start_offsets, strict=True))

    def _changed(self) -> None:
        self.latest = self.epochs[-1] if self.epochs else UNKNOWN_EPOCH
        self.changes += 1

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record that `epoch` begins at `start_offset`; entries that contradict it are dropped."""
        if epoch < 0 or (self.epochs and epoch == self.epochs[-1]):
            return
        while self.epochs and (self.epochs[-1] > epoch or self.start_offsets[-1] >= start_offset):
            self.epochs.pop()
            self.start_offsets.pop()
        # After a newer epoch without records was dropped, `epoch` may already be the last one.
        if not self.epochs or self.epochs[-1] != epoch:
            self.epochs.append(epoch)
            self.start_offsets.append(start_offset)
        self._changed()

    def epoch_of(self, offset: int) -> int:
        """Return the leader epoch in which the record at `offset` was written, -1 if unknown."""
        slot = bisect_right(self.start_offsets, offset) - 1
        return self.epochs[slot] if slot >= 0 else UNKNOWN_EPOCH

    def end_offset(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return (greatest known epoch up to `epoch`, offset at which the next epoch begins).

        (-1, -1) if `epoch` is unknown or newer than all known ones (KIP-101, KIP-279). For an epoch
        older than all known ones: that epoch, and the first known start offset.
        """
        if epoch == UNKNOWN_EPOCH or not self.epochs or epoch > self.epochs[-1]:
            return UNKNOWN_EPOCH, UNKNOWN_OFFSET
        if epoch == self.epochs[-1]:
            return epoch, log_end_offset
        above = bisect_right(self.epochs, epoch)
        floor = self.epochs[above - 1] if above else epoch
        return floor, self.start_offsets[above]

    def clear(self) -> None:
        """Forget all epochs, because the log begins anew."""
        if self.epochs:
            self.epochs.clear()
            self.start_offsets.clear()
            self._changed()

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that begin at or above `end_offset`."""
        while self.start_offsets and self.start_offsets[-1] >= end_offset:
            self.epochs.pop()
            self.start_offsets.pop()
            self._changed()

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget epochs that ended by `start_offset`; the epoch that covers it now begins there."""
        last = bisect_right(self.start_offsets, start_offset) - 1
        if last < 0 or (last == 0 and self.start_offsets[0] == start_offset):
            return
        del self.epochs[:last]
        del self.start_offsets[:last]
        self.start_offsets[0] = start_offset
        self._changed()

    def encode(self) -> bytes:
        """The file's bytes."""
        lines = [f"{epoch} {offset}\n" for epoch, offset in self.entries]
        return f"0\n{len(lines)}\n{''.join(lines)}".encode()

    @classmethod
    def decode(cls, encoded: bytes) -> "LeaderEpochs":
        """Read a file's bytes. Raises ValueError if they are not a leader epoch checkpoint."""
        lines = encoded.decode("ascii").splitlines()
        if len(lines) < 2 or lines[0].strip() != "0" or int(lines[1]) != len(lines) - 2:
            raise ValueError("not a leader epoch checkpoint of version 0")
        entries = []
        for line in lines[2:]:
            epoch, offset = line.split()
            entries.append((int(epoch), int(offset)))
        for earlier, later in pairwise(entries):
            if earlier[0] >= later[0] or earlier[1] >= later[1]:
                raise ValueError("epochs are out of order")
        return cls(entries)
