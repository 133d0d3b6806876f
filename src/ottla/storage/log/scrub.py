"""Scans segments for bits that flipped on the disk, before consumers read them.

A start reads only what was not flushed, and consumers only what they fetch, so old records are
otherwise not checked. A scrub reads a whole segment in small steps. It verifies each batch's
checksum, and compares what the checksum does not cover (offsets, leader epochs) with the log's
state.
"""

from collections.abc import Iterator

from ottla.storage.disk.errors import LogCorrupt
from ottla.storage.log.log import Log
from ottla.storage.segment.checked_batches import checked_batches
from ottla.storage.segment.segment import Segment

# The bytes read in one step, unless a single batch is larger.
STEP_BYTES = 256 << 10
_REMEDY = (
    "Records that were flushed are damaged: look at the disk. Where another replica is in sync, "
    "this one is made anew from the leader; else restore the file from a copy, or delete the "
    "partition."
)


class SegmentScrub:
    """A scrub of one segment as it is now; its offsets end at or before `end_offset`."""

    def __init__(self, log: Log, segment: Segment, end_offset: int) -> None:
        self.log = log
        self.segment = segment
        self.path = segment.path()
        self._end_offset = end_offset
        self._size = segment.size
        self._truncations = log.truncations
        # The leader epoch of the previous batch, and of the log: epochs only rise.
        self._epoch = log.leader_epochs.epoch_of(segment.base_offset)
        self._epoch_max = log.leader_epochs.latest

    @property
    def still_holds(self) -> bool:
        """Whether the log still has the segment unchanged; otherwise the findings are void."""
        return (
            not self.log.offline
            and self._truncations == self.log.truncations
            and any(segment is self.segment for segment in self.log.segments)
        )

    def steps(self, after: LogCorrupt | None = None) -> Iterator[int]:
        """Check a few batches per step, and yield how many bytes were read.

        With `after`, a second scrub begins at the damage that the first one has found. Each step
        may run in another thread. Raises LogCorrupt at the first damage, OSError.
        """
        position, offset = 0, self.segment.base_offset
        if after is not None:
            position, offset = after.position, after.offset
        file = self.segment.filesystem.open(self.path)
        try:
            for window, found in checked_batches(
                file,
                self.path,
                self._size,
                offset,
                remedy=_REMEDY,
                offset_end=self._end_offset,
                position=position,
                window_bytes=STEP_BYTES,
            ):
                for _, header in found:
                    epoch = header.leader_epoch
                    if not self._epoch <= epoch <= self._epoch_max:
                        fault = (
                            f"leader epoch {epoch} is not from {self._epoch} to {self._epoch_max}"
                        )
                        raise LogCorrupt(self.path, position, offset, fault, _REMEDY)
                    self._epoch = epoch
                    position, offset = position + header.size, header.last_offset + 1
                yield len(window)
        finally:
            file.close()


def scrubs(log: Log) -> list[SegmentScrub]:
    """Return a scrub of each segment that has batches; the active one up to its present end."""
    segments = log.segments.as_list()
    ends = [segment.base_offset for segment in segments[1:]] + [log.log_end_offset]
    return [
        SegmentScrub(log, segment, end)
        for segment, end in zip(segments, ends, strict=True)
        if segment.size
    ]
