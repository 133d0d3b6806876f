"""Scans segments for bits that flipped on the disk, before consumers read them.

A start reads only what was not flushed, and consumers only what they fetch, so old records are
otherwise not checked. A scrub reads a whole segment in small steps. It verifies each batch's
checksum, and compares what the checksum does not cover (offsets, leader epochs) with the log's
state.
"""

from ottla.record.header import HEADER_SIZE, BatchHeader, computed_crc, read_header
from ottla.storage.disk.errors import LogCorrupt
from ottla.storage.disk.filesystem import File, FileSystem
from ottla.storage.log.log import Log
from ottla.storage.segment.batch_walk import header_fault
from ottla.storage.segment.segment import Segment

# The bytes read in one step, unless a single batch is larger.
STEP_BYTES = 256 << 10
_REMEDY = (
    "Records that were flushed are damaged: look at the disk. Where another replica is in sync, "
    "this one is made anew from the leader; else restore the file from a copy, or delete the "
    "partition."
)


class SegmentScrub:
    """A scrub of one segment. `step` may be called in any thread, one call at a time."""

    def __init__(self, log: Log, segment: Segment, end_offset: int) -> None:
        """Prepare the scrub; the segment's offsets end at or before `end_offset`."""
        self.log = log
        self.segment = segment
        self._filesystem: FileSystem = segment.filesystem
        self.path = segment.path()
        self._end_offset = end_offset
        self._size = segment.size
        self._truncations = log.truncations
        # The leader epoch of the previous batch, and of the log: epochs only rise.
        self._epoch = log.leader_epochs.epoch_of(segment.base_offset)
        self._epoch_max = log.leader_epochs.latest
        self._file: File | None = None
        self._position = 0
        self._next_offset = segment.base_offset

    @property
    def is_done(self) -> bool:
        return self._position >= self._size

    @property
    def still_holds(self) -> bool:
        """Whether the log still has the segment unchanged; otherwise the findings are void."""
        return (
            not self.log.offline
            and self._truncations == self.log.truncations
            and any(segment is self.segment for segment in self.log.segments)
        )

    def step(self) -> int:
        """Check the next few batches; return how many bytes were read.

        Raises LogCorrupt at the first damage, OSError if the file cannot be read.
        """
        if self._file is None:
            self._file = self._filesystem.open(self.path)
        room = self._size - self._position
        content = self._file.pread(min(STEP_BYTES, room), self._position)
        if len(content) >= HEADER_SIZE:
            size = read_header(content).size
            if len(content) < size <= room:
                content = self._file.pread(size, self._position)
        taken = self._check(content)
        if not taken:
            raise self._damage(0, f"the file has only {len(content)} of the bytes that follow")
        self._position += taken
        return len(content)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _check(self, content: bytes) -> int:
        """Check the whole batches at the beginning of `content`; return their size in bytes."""
        place = 0
        while place < len(content):
            position = self._position + place
            if place + HEADER_SIZE > len(content):
                if position + HEADER_SIZE > self._size:
                    raise self._damage(place, f"only {len(content) - place} bytes of a batch")
                break
            header = read_header(content, place)
            fault = self._fault(header, self._size - position)
            if fault is None and place + header.size > len(content):
                break
            if fault is None and computed_crc(content, place, header.size) != header.crc:
                fault = "the checksum of the batch is wrong"
            if fault is not None:
                raise self._damage(place, fault)
            self._next_offset = header.last_offset + 1
            self._epoch = header.leader_epoch
            place += header.size
        return place

    def _fault(self, header: BatchHeader, room: int) -> str | None:
        fault = header_fault(header, room, self._next_offset)
        if fault is not None:
            return fault
        if header.last_offset >= self._end_offset:
            return f"base offset {header.base_offset} is too high for its segment"
        if not self._epoch <= header.leader_epoch <= self._epoch_max:
            return (
                f"leader epoch {header.leader_epoch} is not from {self._epoch} to {self._epoch_max}"
            )
        return None

    def _damage(self, place: int, what: str) -> LogCorrupt:
        # The next step begins here, so that the caller can have this place read again.
        self._position += place
        return LogCorrupt(self.path, self._position, self._next_offset, what, _REMEDY)


def scrubs(log: Log) -> list[SegmentScrub]:
    """Return a scrub of each segment that has batches; the active one up to its present end."""
    segments = log.segments.as_list()
    ends = [segment.base_offset for segment in segments[1:]] + [log.log_end_offset]
    return [
        SegmentScrub(log, segment, end)
        for segment, end in zip(segments, ends, strict=True)
        if segment.size
    ]
