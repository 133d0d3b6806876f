"""A segment's offset index and time index in memory, and how many entries their files have.

An entry is added every `index_interval_bytes`. The flush job writes the files.
"""

from ottla.record.arrival import BatchRun
from ottla.record.header import BatchHeader
from ottla.storage.index.offset_index import OffsetIndex
from ottla.storage.index.time_index import TimeIndex
from ottla.storage.segment.config import LogConfig


class Indexes:
    """The two indexes of one segment, kept in step with its batches."""

    # Invariant: the indexes describe the segment's batches once `loaded`.

    __slots__ = (
        "_bytes_since_entry",
        "base_offset",
        "config",
        "loaded",
        "max_timestamp",
        "max_timestamp_offset",
        "offsets",
        "offsets_written",
        "times",
        "times_written",
    )

    def __init__(self, base_offset: int, config: LogConfig) -> None:
        self.base_offset = base_offset
        # New sizes apply from the next load or rebuild on, a new interval at once.
        self.config = config
        self.clear()

    def clear(self) -> None:
        """Empty both indexes, for an empty segment or a walk that fills them again."""
        self.offsets = OffsetIndex(self.base_offset, self.config.segment_index_bytes)
        self.times = TimeIndex(self.base_offset, self.config.segment_index_bytes)
        # Greatest timestamp so far and the last offset of the batch that has it.
        self.max_timestamp, self.max_timestamp_offset = -1, self.base_offset
        # Entries that are already in the files.
        self.offsets_written = self.times_written = 0
        self._bytes_since_entry = 0
        self.loaded = True

    def add_batch(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """Index the batch of `size` bytes at `position`, which is the end of the segment so far."""
        # Hot: once per batch.
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self._bytes_since_entry > self.config.index_interval_bytes:
            self.offsets.append(last_offset, position)
            self.times.append(self.max_timestamp, self.max_timestamp_offset)
            self._bytes_since_entry = 0
        self._bytes_since_entry += size

    def add_run(self, position: int, run: BatchRun, offset: int) -> None:
        """Index the batches of a run, which begins at `offset` and at the end of the segment."""
        # Hot: its loop once per batch.
        for arrived in run.arrived:
            last_offset = offset + arrived.last_offset_delta
            self.add_batch(position, arrived.size, last_offset, arrived.max_timestamp)
            position += arrived.size
            offset = last_offset + 1

    def add_batch_again(self, position: int, header: BatchHeader) -> None:
        """Index a batch at or after the last entry, without a second entry for the same batch."""
        if not position or position != self.offsets.last()[1]:
            self.add_batch(position, header.size, header.last_offset, header.max_timestamp)
            return
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp = header.max_timestamp
            self.max_timestamp_offset = header.last_offset
        self._bytes_since_entry = header.size

    def add_last_time(self) -> None:
        """Add the time index's last entry: that of a closed segment has the greatest timestamp."""
        self.times.append(self.max_timestamp, self.max_timestamp_offset)

    def decode(self, offsets_file: bytes, times_file: bytes, segment_bytes: int) -> None:
        """Load the contents of both index files of a segment of that size. Raises ValueError."""
        bytes_max = self.config.segment_index_bytes
        offsets = OffsetIndex.decode(offsets_file, self.base_offset, bytes_max, segment_bytes)
        times = TimeIndex.decode(times_file, self.base_offset, bytes_max)
        if not offsets.positions and not times.timestamps and segment_bytes > 0:
            raise ValueError("both indexes are empty")
        self.offsets, self.times = offsets, times
        self.offsets_written, self.times_written = len(offsets), len(times)
        self.max_timestamp, self.max_timestamp_offset = times.last()

    def truncate(self, position: int, offset: int) -> None:
        """Drop the entries of batches from `position` on, where `offset` begins.

        Batches after the last remaining entry must be indexed again (`add_batch_again`), because
        their timestamps may be greater than that entry's.
        """
        self.offsets.truncate_to_position(position)
        self.times.truncate_to_offset(offset)
        self.offsets_written = min(self.offsets_written, len(self.offsets))
        self.times_written = min(self.times_written, len(self.times))
        self.max_timestamp, self.max_timestamp_offset = self.times.last()
        self._bytes_since_entry = 0
