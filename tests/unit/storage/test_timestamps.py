"""Laws of looking up by time."""

from struct import Struct

from hypothesis import given
from hypothesis import strategies as st

from ottla.record.builder import BatchBuilder
from ottla.record.header import computed_crc, read_header
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


def add_lying(log: Log, value_bytes: int) -> None:
    """A compressed batch of one record at 1 ms, whose header says that there is one at 500 ms."""
    builder = BatchBuilder(compression=4)
    builder.append(1, None, bytes(value_bytes))
    encoded = bytearray(builder.build())
    Struct(">q").pack_into(encoded, 35, 500)
    Struct(">I").pack_into(encoded, 17, computed_crc(encoded, 0, len(encoded)))
    log.append_as_leader(memoryview(encoded), read_header(encoded), 0, 1_000)


def test_headers_that_overstate_their_newest_timestamp_are_expanded_up_to_a_bound() -> None:
    """A lookup costs what a header says, however many of a client's headers lie.

    Three of 30 MiB are looked into, which is more than 64 MiB; the fourth is taken at its word.
    """
    log = open_log(segment_bytes=1 << 20)
    for _ in range(5):
        add_lying(log, 30 << 20)
    assert offset_for_timestamp(log, 400) == (500, 3, 0)


def test_a_few_headers_that_overstate_their_newest_timestamp_hide_no_record() -> None:
    """The first record that is really not older is found behind them."""
    log = open_log(segment_bytes=1 << 20)
    for _ in range(20):
        add_lying(log, 1000)
    add(log, [400, 450])
    assert offset_for_timestamp(log, 420) == (450, 21, 0)


def test_the_time_of_the_append_is_that_of_each_record() -> None:
    """LogAppendTime: the header's newest timestamp is that of all."""
    log = open_log()
    builder = BatchBuilder()
    for timestamp in (1, 2, 3):
        builder.append(timestamp, None, b"value")
    encoded = bytearray(builder.build())
    Struct(">h").pack_into(encoded, 21, 8)
    Struct(">q").pack_into(encoded, 35, 500)
    Struct(">I").pack_into(encoded, 17, computed_crc(encoded, 0, len(encoded)))
    log.append_as_leader(memoryview(encoded), read_header(encoded), 0, 1_000)
    log.advance_log_start(1)
    assert offset_for_timestamp(log, 400) == (500, 1, 0)


def test_indexes_out_of_order_are_found_and_made_again() -> None:
    """When an entry is used, by time or by offset: nothing is skipped."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem, segment_bytes=4_000, index_interval_bytes=1)
    for number in range(60):
        add(log, [1_000 + number])
    end = log.log_end_offset
    first = log.segments.first
    assert first is not log.segments.active
    log.close(clean=True)
    for suffix, size in ((".index", 8), (".timeindex", 12)):
        path = first.path(suffix)
        entries = filesystem.read_bytes(path)
        # Two neighbours in the middle change places.
        swapped = entries[: 4 * size] + entries[5 * size : 6 * size] + entries[4 * size : 5 * size]
        filesystem.unlink(path)
        filesystem.open(path, create=True).append(swapped + entries[6 * size :])
    for by_time in (True, False):
        for number in range(end):
            log = open_log(filesystem, segment_bytes=4_000, clean=True)
            if by_time:
                found = offset_for_timestamp(log, 1_000 + number)
                assert found is not None
                assert found.offset == number
            else:
                found_at = log.read(number, 1, max_offset=end)
                header = read_header(found_at.file.pread(found_at.size, found_at.position))
                assert header.base_offset == number
