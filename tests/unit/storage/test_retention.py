"""Laws of retention: by time, by size, by the log start offset; files go later."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.log.log import Log
from ottla.storage.log.retention import delete_old_segments

from .logs import FOLDER, append, open_log, ranges


def filled(filesystem: MemoryFileSystem | None = None, **settings: int | frozenset[str]) -> Log:
    """Four segments of two batches (162 bytes), at 1000, 2000, 3000 and 4000 ms."""
    log = open_log(filesystem, segment_bytes=162, **settings)  # type: ignore[arg-type]  # Fields.
    for number in range(8):
        append(log, timestamp=1_000 * (1 + number // 2))
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4, 6]
    return log


def kept(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


@pytest.mark.parametrize(
    ("now_ms", "expected"),
    [(2_000, [0, 2, 4, 6]), (2_001, [2, 4, 6]), (4_000, [4, 6]), (5_000, [6])],
)
def test_segments_older_than_retention_ms_go(now_ms: int, expected: list[int]) -> None:
    """A segment is as old as its newest record."""
    log = filled(retention_ms=1_000)
    delete_old_segments(log, now_ms, 8)
    assert kept(log) == expected
    assert log.log_start_offset == expected[0]


def test_active_segment_goes_by_time_too() -> None:
    """A new one is begun first, so that offsets go on."""
    log = filled(retention_ms=1_000)
    delete_old_segments(log, 10_000, 8)
    assert (kept(log), log.log_start_offset, log.log_end_offset) == ([8], 8, 8)
    assert delete_old_segments(log, 20_000, 8) == []
    assert append(log).base_offset == 8


@pytest.mark.parametrize(
    ("retention_bytes", "expected"),
    [(648, [0, 2, 4, 6]), (487, [0, 2, 4, 6]), (486, [2, 4, 6]), (1, [6])],
)
def test_segments_beyond_retention_bytes_go(retention_bytes: int, expected: list[int]) -> None:
    """As long as the log stays at least that large without them."""
    log = filled(retention_ms=-1, retention_bytes=retention_bytes)
    delete_old_segments(log, 10**15, 8)
    assert kept(log) == expected


def test_segments_below_the_log_start_offset_go() -> None:
    """DeleteRecords moves the start; whole segments before it are removed."""
    log = filled(retention_ms=-1, cleanup_policy=frozenset({"compact"}))
    log.advance_log_start(5)
    delete_old_segments(log, 10**15, 8)
    assert (kept(log), log.log_start_offset, ranges(log)[0]) == ([4, 6], 5, (5, 5))


def test_compacted_log_keeps_old_segments() -> None:
    """Without the delete policy neither age nor size lets a segment go."""
    log = filled(retention_ms=1, retention_bytes=1, cleanup_policy=frozenset({"compact"}))
    assert delete_old_segments(log, 10**15, 8) == []


def test_records_above_the_high_watermark_stay() -> None:
    """What is not committed may still be needed by followers."""
    log = filled(retention_ms=1_000)
    delete_old_segments(log, 10_000, 5)
    assert kept(log) == [4, 6]


def test_files_are_set_aside_first_and_removed_by_the_job() -> None:
    """Readers that hold a place in them may finish (P1: reads are not blocked)."""
    filesystem = MemoryFileSystem()
    log = filled(filesystem, retention_ms=1_000, file_delete_delay_ms=60_000)
    located = log.read(0, 1 << 20, max_offset=8)
    [deletion] = delete_old_segments(log, 2_001, 8)
    assert deletion.delay_ms == 60_000
    assert "00000000000000000000.log.deleted" in filesystem.listdir(FOLDER)
    assert len(located.file.pread(located.size, located.position)) == 162
    deletion.run()
    assert "00000000000000000000.log.deleted" not in filesystem.listdir(FOLDER)
    with pytest.raises(OttlaError) as caught:
        log.read(0, 1, max_offset=8)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_unloaded_segments_tell_their_age_from_the_time_index() -> None:
    """After a restart retention works without reading the logs."""
    filesystem = MemoryFileSystem()
    filled(filesystem).close(clean=True)
    log = open_log(filesystem, clean=True, recovery_point=8, retention_ms=1_000)
    delete_old_segments(log, 3_500, 8)
    assert (kept(log), log.segments.first.indexes.loaded) == ([4, 6], False)


def test_log_start_offset_does_not_pass_the_end() -> None:
    """Records that do not exist cannot be deleted; an older start is ignored."""
    log = filled()
    with pytest.raises(OttlaError) as caught:
        log.advance_log_start(9)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    log.advance_log_start(3)
    log.advance_log_start(2)
    assert log.log_start_offset == 3


def test_leader_epochs_begin_with_the_log() -> None:
    """The term that holds the first record begins at it."""
    log = open_log()
    for epoch in (0, 0, 1):
        append(log, leader_epoch=epoch)
    log.advance_log_start(1)
    assert log.leader_epochs.entries == [(0, 1), (1, 2)]
    log.advance_log_start(2)
    assert log.leader_epochs.entries == [(1, 2)]
