"""Laws of a log's list of segments."""

from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.segment.config import LogConfig
from ottla.storage.segment.segment import Segment
from ottla.storage.segment.segments import Segments

FILESYSTEM = MemoryFileSystem()


def segment(base_offset: int) -> Segment:
    return Segment(FILESYSTEM, "/kafka/flights-0", base_offset, LogConfig(), 1_000)


def bases(segments: Segments) -> list[int]:
    return [each.base_offset for each in segments]


def test_the_active_segment_is_the_last_one_after_every_change() -> None:
    """Whatever is added, removed or replaced, appends go to the end."""
    segments = Segments([segment(0), segment(10)])
    assert (bases(segments), segments.active.base_offset) == ([0, 10], 10)
    segments.add(segment(20))
    segments.add(segment(30))
    assert (bases(segments), segments.active.base_offset) == ([0, 10, 20, 30], 30)
    segments.remove_first(1)
    assert (bases(segments), segments.active.base_offset) == ([10, 20, 30], 30)
    segments.substitute(segments.as_list()[:2], segment(10))
    assert (bases(segments), segments.active.base_offset) == ([10, 30], 30)
    segments.remove_after(1)
    assert (bases(segments), segments.active.base_offset) == ([10], 10)
    segments.replace(segment(50))
    assert (bases(segments), segments.active.base_offset) == ([50], 50)


def test_an_offset_belongs_to_the_last_segment_that_begins_at_or_below_it() -> None:
    """Offsets below all segments are looked for in the first."""
    segments = Segments([segment(5), segment(10)])
    assert [segments.floor(offset) for offset in (0, 5, 9, 10, 99)] == [0, 0, 0, 1, 1]
