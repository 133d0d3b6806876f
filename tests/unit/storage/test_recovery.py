"""Laws of recovery: a torn end is cut, damage to kept data is refused and named, indexes are made
again.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.base.errors import ErrorCode
from ottla.storage.disk.errors import LogCorrupt
from ottla.storage.disk.filesystem import FileSystem
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.files.names import (
    LEADER_EPOCHS,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
from ottla.storage.log.log import Log

from .batches import batch, marker, parsed
from .logs import FOLDER, append, open_log, overwrite, ranges

LOG = f"{FOLDER}/00000000000000000000.log"
BATCH_BYTES = 81


def written(
    count: int = 5, *, flushed: int = 0, payload: bytes = b"x" * 20, **settings: int
) -> tuple[MemoryFileSystem, Log]:
    """A log of `count` one-record batches, `flushed` of them flushed with indexes."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem, **settings)
    for number in range(count):
        if number == flushed and flushed:
            log.flush(checkpoint=True)
        append(log, payload=payload, timestamp=1_000 + number)
    return filesystem, log


def cut(filesystem: FileSystem, path: str, size: int) -> None:
    filesystem.open(path).truncate(size)


@pytest.mark.parametrize("size", [4 * BATCH_BYTES + 1, 4 * BATCH_BYTES + 61, 5 * BATCH_BYTES - 1])
def test_torn_last_batch_is_cut(size: int) -> None:
    """A crash in the middle of a write leaves what was whole before it (P19)."""
    filesystem, _ = written()
    cut(filesystem, LOG, size)
    log = open_log(filesystem)
    assert (log.log_end_offset, filesystem.size(LOG)) == (4, 4 * BATCH_BYTES)
    assert log.recovery.truncated_bytes == size - 4 * BATCH_BYTES
    assert append(log).base_offset == 4
    assert ranges(log) == [(offset, offset) for offset in range(5)]


def test_end_of_zeros_is_cut() -> None:
    """A file system may make a file larger before it writes the contents."""
    filesystem, _ = written()
    filesystem.open(LOG).append(bytes(10_000))
    log = open_log(filesystem, recovery_point=5)
    assert (log.log_end_offset, filesystem.size(LOG)) == (5, 5 * BATCH_BYTES)


def test_end_of_rubbish_is_cut() -> None:
    """A torn sector may hold anything."""
    filesystem, _ = written()
    filesystem.open(LOG).append(b"\x02" * 700)
    log = open_log(filesystem, recovery_point=5)
    assert (log.log_end_offset, filesystem.size(LOG)) == (5, 5 * BATCH_BYTES)


@pytest.mark.parametrize("place", [0, 4, 7, 8, 16, 17, 30, 61, 80])
def test_damage_with_valid_batches_behind_is_refused_and_named(place: int) -> None:
    """Cutting there could drop acknowledged records: file, byte and offset are told (S2)."""
    filesystem, _ = written()
    position = 2 * BATCH_BYTES
    old = filesystem.read_bytes(LOG)[position + place]
    overwrite(filesystem, LOG, position + place, bytes([old ^ 0x40]))
    with pytest.raises(LogCorrupt) as caught:
        open_log(filesystem)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert caught.value.path == LOG
    if place in (4, 7):
        # The checksum does not cover the offset: that it jumped is seen at the next batch.
        assert caught.value.position == position + BATCH_BYTES
    else:
        assert (caught.value.position, caught.value.offset) == (position, 2)
    assert "Restore the file" in caught.value.message
    assert filesystem.size(LOG) == 5 * BATCH_BYTES


def test_offset_that_jumped_before_the_last_batch_is_refused() -> None:
    """The last batch is good, but its offset is lower than the one before: one of both is wrong."""
    filesystem, _ = written(2)
    overwrite(filesystem, LOG, 4, b"\1")
    with pytest.raises(LogCorrupt, match="base offset 1 after 16777216"):
        open_log(filesystem)


def test_damaged_header_below_the_recovery_point_is_refused() -> None:
    """What was flushed is never cut, even where nothing stands behind it."""
    filesystem, _ = written()
    overwrite(filesystem, LOG, 4 * BATCH_BYTES + 16, b"\0")
    with pytest.raises(LogCorrupt) as caught:
        open_log(filesystem, recovery_point=5)
    assert (caught.value.position, caught.value.offset) == (4 * BATCH_BYTES, 4)
    assert filesystem.size(LOG) == 5 * BATCH_BYTES


def test_log_shorter_than_its_recovery_point_is_refused() -> None:
    """Flushed records are missing: the file was cut by somebody else."""
    filesystem, _ = written()
    cut(filesystem, LOG, 3 * BATCH_BYTES)
    with pytest.raises(LogCorrupt, match="flushed up to offset 5"):
        open_log(filesystem, recovery_point=5)
    with pytest.raises(LogCorrupt, match="flushed up to offset 5"):
        open_log(filesystem, recovery_point=5, clean=True)


def test_page_that_was_never_written_ends_the_log() -> None:
    """A page of zeros over a batch's beginning is the mark of a power cut, not of damage."""
    filesystem, _ = written(150)
    overwrite(filesystem, LOG, 4096, bytes(4096))
    log = open_log(filesystem, recovery_point=10)
    assert log.log_end_offset == 4096 // BATCH_BYTES
    assert ranges(log)[-1] == (49, 49)


def test_zeros_that_are_records_do_not_look_like_a_lost_page() -> None:
    """A damaged batch whose records are zeros is still damage."""
    filesystem, _ = written(5, payload=bytes(9_000))
    overwrite(filesystem, LOG, 9_061 * 2 + 100, b"\1")
    with pytest.raises(LogCorrupt, match="checksum"):
        open_log(filesystem)


def test_checksums_below_the_recovery_point_are_not_read_again() -> None:
    """Recovery reads what was not flushed, not the whole log."""
    filesystem, _ = written(100, flushed=90)
    overwrite(filesystem, LOG, 10 * BATCH_BYTES + 70, b"y")
    log = open_log(filesystem, recovery_point=90)
    assert (log.log_end_offset, log.recovery.scanned_bytes) == (100, 10 * BATCH_BYTES)


def test_torn_end_of_an_inner_segment_drops_what_follows() -> None:
    """Segments behind lost records cannot be kept: the log would have a hole."""
    filesystem, log = written(4, segment_bytes=2 * BATCH_BYTES)
    assert [segment.base_offset for segment in log.segments] == [0, 2]
    cut(filesystem, LOG, BATCH_BYTES)
    log = open_log(filesystem, segment_bytes=2 * BATCH_BYTES)
    assert (log.log_end_offset, ranges(log)) == (1, [(0, 0)])
    assert not filesystem.exists(f"{FOLDER}/00000000000000000002.log")
    assert [append(log).base_offset for _ in range(2)] == [1, 2]


@pytest.mark.parametrize("suffix", [OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX])
@pytest.mark.parametrize("damage", ["missing", "empty", "flipped", "torn"])
@pytest.mark.parametrize("clean", [True, False])
def test_damaged_index_is_made_again(suffix: str, damage: str, clean: bool) -> None:
    """An index never leads to a wrong answer: the log itself is the truth."""
    filesystem, log = written(200, index_interval_bytes=100)
    log.close(clean=True)
    path = LOG.replace(".log", suffix)
    good = filesystem.read_bytes(path)
    if damage == "missing":
        filesystem.unlink(path)
    elif damage == "empty":
        cut(filesystem, path, 0)
    elif damage == "flipped":
        overwrite(filesystem, path, 7, bytes([good[7] ^ 0x01]))
    else:
        cut(filesystem, path, len(good) - 3)
    log = open_log(filesystem, clean=clean, recovery_point=200, index_interval_bytes=100)
    assert ranges(log) == [(offset, offset) for offset in range(200)]
    for offset in range(0, 200, 7):
        assert log.read(offset, 10, max_offset=200).position == offset * BATCH_BYTES


def test_indexes_after_recovery_equal_those_of_a_clean_stop() -> None:
    """What a scan makes again is byte for byte what appending had made."""
    filesystem, log = written(200, flushed=77, index_interval_bytes=100)
    offsets, times = (
        log.segments.active.indexes.offsets.encode(),
        log.segments.active.indexes.times.encode(),
    )
    filesystem.crash()
    log = open_log(filesystem, recovery_point=77, index_interval_bytes=100)
    assert log.segments.active.indexes.offsets.encode() == offsets
    assert log.segments.active.indexes.times.encode() == times
    assert log.segments.active.indexes.max_timestamp == 1_199


@pytest.mark.parametrize("recovery_point", [0, 3, 77, 120])
@pytest.mark.parametrize("end", [120, 200])
def test_index_entries_above_the_recovery_point_are_made_again(
    recovery_point: int, end: int
) -> None:
    """They may have been written for batches that were lost."""
    filesystem, log = written(200, index_interval_bytes=100)
    log.flush(checkpoint=True)
    filesystem.crash()
    if end < 200:
        cut(filesystem, LOG, end * BATCH_BYTES + 3)
    recovered = open_log(filesystem, recovery_point=recovery_point, index_interval_bytes=100)
    _, expected = written(end, index_interval_bytes=100)
    assert (
        recovered.segments.active.indexes.offsets.encode()
        == expected.segments.active.indexes.offsets.encode()
    )
    assert (
        recovered.segments.active.indexes.times.encode()
        == expected.segments.active.indexes.times.encode()
    )
    assert recovered.segments.active.indexes.max_timestamp == 999 + end


def test_closed_segments_are_recovered_as_they_were_closed() -> None:
    """With the last entry of the time index, and due to be flushed."""
    filesystem, log = written(7, segment_bytes=162)
    filesystem.crash()
    recovered = open_log(filesystem, segment_bytes=162)
    assert recovered.needs_flush
    for found, expected in zip(recovered.segments, log.segments, strict=True):
        assert found.indexes.offsets.encode() == expected.indexes.offsets.encode()
        assert found.indexes.times.encode() == expected.indexes.times.encode()


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_any_flipped_byte_of_an_index_changes_no_answer(data: st.DataObject) -> None:
    """Whatever an index says, the batch it leads to is looked at."""
    filesystem, log = written(40, index_interval_bytes=200)
    log.close(clean=True)
    path = LOG.replace(".log", OFFSET_INDEX_SUFFIX)
    good = filesystem.read_bytes(path)
    place = data.draw(st.integers(0, len(good) - 1))
    flip = data.draw(st.integers(1, 255))
    overwrite(filesystem, path, place, bytes([good[place] ^ flip]))
    log = open_log(filesystem, clean=True, recovery_point=40, index_interval_bytes=200)
    for offset in range(40):
        located = log.read(offset, 10, max_offset=40)
        assert (located.position, located.size) == (offset * BATCH_BYTES, BATCH_BYTES)
    assert ranges(log, 1_000) == [(offset, offset) for offset in range(40)]


def test_lost_leader_epochs_are_read_from_the_batches() -> None:
    """The vector of epochs and start offsets is complete again (P19)."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    for epoch in (0, 0, 2, 5):
        append(log, leader_epoch=epoch)
    log.close(clean=True)
    filesystem.unlink(f"{FOLDER}/{LEADER_EPOCHS}")
    log = open_log(filesystem, clean=True, recovery_point=4)
    assert log.leader_epochs.entries == [(0, 0), (2, 2), (5, 3)]


def test_leader_epochs_of_lost_records_are_forgotten() -> None:
    """An epoch whose records were cut did not begin."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    append(log, leader_epoch=0)
    append(log, leader_epoch=1)
    log.flush()
    cut(filesystem, LOG, BATCH_BYTES + 5)
    log = open_log(filesystem, recovery_point=1)
    assert log.leader_epochs.entries == [(0, 0)]


def test_snapshot_from_above_the_end_is_dropped() -> None:
    """State of records that were lost must not refuse their retries (S27)."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    append(log, producer_id=7, producer_epoch=0, sequence=0)
    append(log, producer_id=7, producer_epoch=0, sequence=1)
    log.flush(checkpoint=True)
    assert filesystem.exists(f"{FOLDER}/00000000000000000002.snapshot")
    cut(filesystem, LOG, BATCH_BYTES + 5)
    log = open_log(filesystem, recovery_point=1)
    assert not filesystem.exists(f"{FOLDER}/00000000000000000002.snapshot")
    retried = append(log, producer_id=7, producer_epoch=0, sequence=1)
    assert (retried.base_offset, retried.duplicate) == (1, False)


def test_damaged_snapshot_is_replaced_by_the_log() -> None:
    """Producer state is then replayed from an older snapshot, or the start."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    for sequence in range(3):
        append(log, producer_id=7, producer_epoch=0, sequence=sequence)
    log.close(clean=True)
    overwrite(filesystem, f"{FOLDER}/00000000000000000003.snapshot", 20, b"\xff")
    log = open_log(filesystem, clean=True, recovery_point=3)
    assert [entry.last_sequence for entry in log.producers.described()] == [2]


def test_damaged_transaction_index_is_made_again() -> None:
    """Aborted transactions are found again from their markers."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    append(log, producer_id=7, producer_epoch=0, sequence=0, attributes=0x10)
    log.append_as_leader(*parsed(marker(commit=False, producer_id=7)), 0, 1_000)
    log.close(clean=True)
    overwrite(filesystem, LOG.replace(".log", TRANSACTION_INDEX_SUFFIX), 0, b"\xff")
    log = open_log(filesystem, clean=True, recovery_point=2)
    assert log.segments.aborted_transactions(0, 2) == [(7, 0, 1, 2)]


def test_leftovers_of_interrupted_work_are_removed() -> None:
    """Files set aside for deletion, half-written ones and indexes without a log go at the start."""
    filesystem, _ = written(1)
    for name in ("1.log.deleted", "2.log.cleaned", f"{LEADER_EPOCHS}.tmp", f"{9:020d}.index"):
        filesystem.open(f"{FOLDER}/{name}", create=True)
    open_log(filesystem)
    assert filesystem.listdir(FOLDER) == ["00000000000000000000.log"]


def test_batch_larger_than_the_read_buffer_is_recovered() -> None:
    """A batch may be larger than one read of the scan."""
    filesystem, _ = written(2, payload=b"z" * (9 << 20))
    assert open_log(filesystem).log_end_offset == 2
    cut(filesystem, LOG, (17 << 20) + 5)
    assert open_log(filesystem).log_end_offset == 1


def test_log_that_ends_before_its_start_offset_begins_there_anew() -> None:
    """Records below the log start offset were deleted: losing them in a crash loses nothing."""
    filesystem, _ = written(2)
    log = open_log(filesystem, log_start_offset=10)
    assert (log.log_start_offset, log.log_end_offset) == (10, 10)
    assert append(log).base_offset == 10


def test_gap_left_by_compaction_is_no_damage() -> None:
    """Offsets rise but need not be dense."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    log.append_as_follower(batch(1, base_offset=3, leader_epoch=0), 1_000)
    log.append_as_follower(batch(1, base_offset=900, leader_epoch=0), 1_000)
    log = open_log(filesystem)
    assert (log.log_end_offset, ranges(log)) == (901, [(3, 3), (900, 900)])


def test_producers_last_five_batches_are_known_again_however_many_segments_they_lie_in() -> None:
    """A snapshot tells the last batch only; retries of the others must not stand twice (S27)."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem, segment_bytes=BATCH_BYTES)
    for sequence in range(8):
        append(log, producer_id=7, producer_epoch=0, sequence=sequence)
    assert len(log.segments) == 8
    log.close(clean=True)

    log = open_log(filesystem, clean=True, recovery_point=8, segment_bytes=BATCH_BYTES)
    for sequence in range(3, 8):
        retried = append(log, producer_id=7, producer_epoch=0, sequence=sequence)
        assert (retried.base_offset, retried.duplicate) == (sequence, True)
