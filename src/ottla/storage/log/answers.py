"""What a log answers to an append and to a read."""

from typing import NamedTuple

from ottla.storage.disk.filesystem import File


class Appended(NamedTuple):
    """Where a batch stands. `log_append_time` is -1 where the producer's timestamps are kept."""

    base_offset: int
    last_offset: int
    log_append_time: int
    log_start_offset: int
    duplicate: bool = False


class Slice(NamedTuple):
    """Whole batches in a segment's file: `size` bytes (0 for none) from `position`.

    The file stays open for the topic's file deletion delay after its segment was deleted.
    """

    file: File
    position: int
    size: int
    segment_base_offset: int
