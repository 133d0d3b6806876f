"""Laws of looking up by time."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.record.builder import BatchBuilder
from ottla.record.header import read_header
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.log.log import Log
from ottla.storage.log.timestamps import max_timestamp_offset, offset_for_timestamp

from .logs import open_log


def add(log: Log, timestamps: list[int], leader_epoch: int = 0) -> None:
    builder = BatchBuilder()
    for timestamp in timestamps:
        builder.append(timestamp, None, b"value")
    encoded = builder.build()
    log.append_as_leader(memoryview(encoded), read_header(encoded), leader_epoch, 1_000)


@given(
    st.lists(st.lists(st.integers(0, 100), min_size=1, max_size=5), min_size=1, max_size=15),
    st.integers(-1, 101),
    st.integers(0, 20),
    st.booleans(),
)
def test_search_by_time_equals_a_linear_scan(
    batches: list[list[int]], timestamp: int, start: int, reopened: bool
) -> None:
    """The first record, by offset, that is not older; across segments and after a restart."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem, segment_bytes=400, index_interval_bytes=100)
    for timestamps in batches:
        add(log, timestamps)
    flat = [timestamp for timestamps in batches for timestamp in timestamps]
    start = min(start, len(flat))
    log.advance_log_start(start)
    if reopened:
        log.close(clean=True)
        log = open_log(
            filesystem,
            clean=True,
            recovery_point=len(flat),
            log_start_offset=start,
            segment_bytes=400,
            index_interval_bytes=100,
        )
    expected = [
        (time, offset) for offset, time in enumerate(flat) if time >= timestamp and offset >= start
    ]
    found = offset_for_timestamp(log, timestamp)
    assert (found[:2] if found else None) == (expected[0] if expected else None)


def test_greatest_timestamp_is_found_with_its_first_record() -> None:
    """Time need not rise with offsets."""
    log = open_log(segment_bytes=100)
    add(log, [5], 1)
    add(log, [3, 9, 9], 2)
    add(log, [7], 3)
    assert max_timestamp_offset(log) == (9, 2, 2)


def test_empty_log_has_no_record_at_any_time() -> None:
    """None, rather than an offset that is not there."""
    log = open_log()
    assert (max_timestamp_offset(log), offset_for_timestamp(log, 0)) == (None, None)
