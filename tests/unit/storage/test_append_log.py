"""Laws of appending and reading."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.record.header import computed_crc, read_header
from ottla.storage.log.log import Log

from .batches import batch
from .logs import append, open_log, ranges, read_headers


def sizes(log: Log, offset: int, max_bytes: int, *, min_one_batch: bool) -> int:
    return log.read(
        offset, max_bytes, max_offset=log.log_end_offset, min_one_batch=min_one_batch
    ).size


def test_offsets_follow_each_other() -> None:
    """Every batch takes the offsets after the last one's (P1)."""
    log = open_log()
    appended = [append(log, count) for count in (3, 1, 2)]
    assert [(one.base_offset, one.last_offset) for one in appended] == [(0, 2), (3, 3), (4, 5)]
    assert log.log_end_offset == 6
    assert ranges(log) == [(0, 2), (3, 3), (4, 5)]


def test_batch_is_stored_as_it_came_but_for_offset_and_leader_epoch() -> None:
    """One format for producer, broker and consumer: only the first 16 bytes change (P2)."""
    log = open_log()
    append(log, 2)
    sent = batch(3, payload=b"as it came")
    log.append_as_leader(memoryview(bytearray(sent)), read_header(sent), 7, 1_000)
    located = log.read(2, 1 << 20, max_offset=5)
    stored = located.file.pread(located.size, located.position)
    assert stored[16:] == sent[16:]
    header = read_header(stored)
    assert (header.base_offset, header.leader_epoch) == (2, 7)
    assert computed_crc(stored, 0, header.size) == header.crc


def test_read_begins_with_the_batch_that_holds_the_offset() -> None:
    """A batch is never split (P3)."""
    log = open_log()
    append(log, 3)
    append(log, 3)
    assert [header.base_offset for header in read_headers(log, 4)] == [3]


def test_read_goes_on_in_the_next_segment() -> None:
    """Segments of a rolled log are read one after the other."""
    log = open_log(segment_bytes=200)
    for _ in range(5):
        append(log, 2)
    assert [segment.base_offset for segment in log.segments] == [0, 4, 8]
    assert [header.base_offset for header in read_headers(log, 0)] == [0, 2]
    assert [header.base_offset for header in read_headers(log, 5)] == [4, 6]
    assert read_headers(log, 10) == []


@pytest.mark.parametrize("offset", [-1, 3])
def test_read_outside_of_the_log_is_refused(offset: int) -> None:
    """Offsets below the start and above the end have their own error."""
    log = open_log()
    append(log, 2)
    with pytest.raises(OttlaError) as caught:
        log.read(offset, 100, max_offset=2)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_read_gives_whole_batches_up_to_max_bytes() -> None:
    """max_bytes cuts between batches; batches here are 81 bytes."""
    log = open_log()
    for _ in range(4):
        append(log)
    assert sizes(log, 0, 1_000, min_one_batch=True) == 324
    assert sizes(log, 0, 162, min_one_batch=True) == 162
    assert sizes(log, 0, 161, min_one_batch=True) == 81
    assert sizes(log, 1, 10, min_one_batch=True) == 81
    assert sizes(log, 1, 10, min_one_batch=False) == 0


@pytest.mark.parametrize(("max_offset", "last"), [(0, None), (1, 0), (2, 0), (3, 2), (4, 3)])
def test_read_ends_below_max_offset(max_offset: int, last: int | None) -> None:
    """What is not committed is not read: a batch that reaches max_offset stays out."""
    log = open_log()
    for count in (1, 2, 1):
        append(log, count)
    located = log.read(0, 1 << 20, max_offset=max_offset)
    content = located.file.pread(located.size, located.position)
    assert len(content) == {None: 0, 0: 81, 2: 162, 3: 243}[last]


def test_reader_that_goes_on_reads_no_header(monkeypatch: pytest.MonkeyPatch) -> None:
    """A consumer at the log's end is located without a single read of the file (P4)."""
    log = open_log()
    append(log)
    log.read(0, 1 << 20, max_offset=1)
    append(log)
    reads: list[int] = []
    monkeypatch.setattr(type(log.segments.active.file), "pread", lambda *_: reads.append(1))
    located = log.read(1, 1 << 20, max_offset=2)
    assert (located.position, located.size, reads) == (81, 81, [])


def test_small_batches_are_found_by_index_and_a_short_walk() -> None:
    """Locating both ends reads a header and two windows, however long the log is (P1)."""
    log = open_log(index_interval_bytes=500)
    for _ in range(300):
        append(log)
    reads: list[int] = []
    active = log.segments.active.file
    pread = type(active).pread

    class Counting:
        def __getattr__(self, name: str) -> object:
            return getattr(active, name)

        def pread(self, size: int, position: int) -> bytes:
            reads.append(size)
            return pread(active, size, position)  # type: ignore[arg-type]  # The real file.

    log.segments.active._file = Counting()  # type: ignore[assignment]  # Stands in for the file.
    for offset in (0, 1, 149, 150, 299):
        reads.clear()
        assert log.read(offset, 81, max_offset=300).position == offset * 81
        assert len(reads) <= 3


def test_segment_rolls_before_it_grows_beyond_segment_bytes() -> None:
    """No segment is larger than segment.bytes."""
    log = open_log(segment_bytes=162)
    for _ in range(4):
        append(log)
    assert [segment.base_offset for segment in log.segments] == [0, 2]
    assert [segment.size for segment in log.segments] == [162, 162]


def test_segment_rolls_when_batches_span_its_age() -> None:
    """Age is told by timestamps of batches: the first one's against the next one's."""
    log = open_log(segment_ms=100)
    append(log, timestamp=1_000)
    append(log, timestamp=1_100)
    append(log, timestamp=1_101)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_jitter_spreads_the_rolling_of_logs_and_only_shortens_it() -> None:
    """Partitions that were made together do not all roll at once; each one is predictable."""
    ages = []
    for number in (0, 1, 2, 0):
        log = open_log(
            partition=TopicPartition("flights", number), segment_ms=1_000, segment_jitter_ms=500
        )
        timestamp = 1_000
        while len(log.segments) == 1:
            append(log, timestamp=timestamp)
            timestamp += 10
        ages.append(timestamp - 10 - 1_000)
    assert all(500 <= age <= 1_010 for age in ages)
    assert len(set(ages[:3])) == 3
    assert ages[3] == ages[0]


def test_segment_of_batches_without_time_rolls_by_the_clock() -> None:
    """Where batches carry no timestamps, the segment's own age counts."""
    log = open_log(segment_ms=100)
    append(log, timestamp=-1, now_ms=1_000)
    append(log, timestamp=-1, now_ms=1_100)
    append(log, timestamp=-1, now_ms=1_101)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


@pytest.mark.parametrize(("step_ms", "rolled_at"), [(0, 6), (1, 3)])
def test_segment_rolls_when_an_index_is_full(step_ms: int, rolled_at: int) -> None:
    """40 bytes hold 5 offsets; of 3 times one place is kept for the segment's last entry."""
    log = open_log(segment_index_bytes=40, index_interval_bytes=80)
    for number in range(rolled_at + 1):
        append(log, timestamp=1_000 + step_ms * number)
    assert [segment.base_offset for segment in log.segments] == [0, rolled_at]


def test_segment_rolls_before_a_relative_offset_overflows() -> None:
    """Offsets in the indexes are 31 bits relative to the segment's base."""
    log = open_log()
    log.append_as_follower(batch(1, base_offset=0, leader_epoch=0), 1_000)
    log.append_as_follower(batch(1, base_offset=2**31 - 1, leader_epoch=0), 1_000)
    log.append_as_follower(batch(1, base_offset=2**31, leader_epoch=0), 1_000)
    assert [segment.base_offset for segment in log.segments] == [0, 2**31]
    assert log.log_end_offset == 2**31 + 1


def test_follower_keeps_offsets_and_epochs_of_the_leader() -> None:
    """Batches that carry offsets are stored byte for byte, gaps and terms included."""
    log = open_log()
    first = batch(2, base_offset=0, leader_epoch=3)
    second = batch(1, base_offset=7, leader_epoch=4)
    log.append_as_follower(bytes(first + second), 1_000)
    assert log.log_end_offset == 8
    assert log.leader_epochs.entries == [(3, 0), (4, 7)]
    assert ranges(log) == [(0, 1), (7, 7)]
    assert log.segments.active.file.pread(200, 0) == bytes(first + second)


@pytest.mark.parametrize("damage", ["crc", "order", "length"])
def test_follower_refuses_a_bad_batch_and_keeps_those_before(damage: str) -> None:
    """What a leader sends is checked, too."""
    log = open_log()
    good = batch(2, base_offset=0, leader_epoch=0)
    bad = batch(1, base_offset=1 if damage == "order" else 2, leader_epoch=0)
    if damage == "crc":
        bad[-1] ^= 1
    if damage == "length":
        del bad[-1]
    with pytest.raises(OttlaError) as caught:
        log.append_as_follower(bytes(good + bad), 1_000)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert (log.log_end_offset, ranges(log)) == (2, [(0, 1)])


def test_follower_refuses_a_batch_whose_base_offset_jumps_over_those_behind_it() -> None:
    """A flipped bit, which no checksum covers, must not move records and drop what follows."""
    log = open_log()
    good, next_one = (batch(2, base_offset=n, leader_epoch=0) for n in (0, 4))
    jumped = batch(2, base_offset=2 + 64, leader_epoch=0)
    with pytest.raises(OttlaError) as caught:
        log.append_as_follower(bytes(good + jumped + next_one), 1_000)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert "base offset 66, and the next batch has 4" in caught.value.message
    assert (log.log_end_offset, ranges(log)) == (2, [(0, 1)])
    log.append_as_follower(bytes(batch(2, base_offset=2, leader_epoch=0) + next_one), 1_000)
    assert ranges(log) == [(0, 1), (2, 3), (4, 5)]


def test_log_append_time_is_answered() -> None:
    """A batch stamped by the broker says so in the answer; else -1."""
    log = open_log()
    assert append(log, timestamp=5).log_append_time == -1
    assert append(log, timestamp=5, attributes=0x08).log_append_time == 5
