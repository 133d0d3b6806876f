"""Laws of flushing: what is counted as flushed is on the disk, and nothing else is."""

import errno
from random import Random

import pytest

from ottla.ledger.history import StartCause
from ottla.storage.disk.errors import DirectoryFailed, StorageError
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.log.retention import delete_old_segments
from ottla.storage.log.truncation import truncate_to

from .batches import batch
from .logs import FOLDER, append, open_log, ranges


def test_recovery_point_is_what_the_job_was_made_for() -> None:
    """Records appended while a flush is under way wait for the next one (P27)."""
    log = open_log()
    append(log, 3)
    job = log.prepare_flush()
    append(log, 2)
    job.run()
    assert (
        log.flush_state.recovery_point,
        log.log_end_offset - log.flush_state.recovery_point,
    ) == (0, 5)
    log.on_flushed(job, 7_000)
    assert (
        log.flush_state.recovery_point,
        log.log_end_offset - log.flush_state.recovery_point,
        log.flush_state.last_flush_ms,
    ) == (3, 2, 7_000)


def test_flushed_records_survive_a_power_cut_and_others_may_not() -> None:
    """The recovery point is a promise (P19, P27)."""
    ends = set()
    for seed in range(200):
        filesystem = MemoryFileSystem()
        log = open_log(filesystem)
        filesystem.fsync_directory("/")
        filesystem.fsync_directory("/kafka")
        append(log)
        append(log)
        log.flush()
        append(log)
        filesystem.crash(Random(seed))
        again = open_log(filesystem, recovery_point=2)
        assert ranges(again)[:2] == [(0, 0), (1, 1)]
        ends.add(again.log_end_offset)
    assert ends == {2, 3}


@pytest.mark.parametrize("seed", range(20))
def test_first_flush_makes_the_files_name_durable(seed: int) -> None:
    """A file without a name is lost whole; no side file need be written for that."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    filesystem.fsync_directory("/")
    filesystem.fsync_directory("/kafka")
    append(log, leader_epoch=-1)
    log.flush()
    filesystem.crash(Random(seed))
    assert ranges(open_log(filesystem, recovery_point=1)) == [(0, 0)]


@pytest.mark.parametrize("seed", range(20))
def test_flush_after_a_restart_covers_what_the_killed_process_wrote(seed: int) -> None:
    """Closed segments that were found unflushed are flushed, too, before they are promised."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem, segment_bytes=162)
    filesystem.fsync_directory("/")
    filesystem.fsync_directory("/kafka")
    for _ in range(7):
        append(log)
    filesystem.crash()
    log = open_log(filesystem, segment_bytes=162)
    log.flush()
    assert log.flush_state.recovery_point == 7
    filesystem.crash(Random(seed))
    again = open_log(filesystem, segment_bytes=162, recovery_point=7)
    assert ranges(again) == [(offset, offset) for offset in range(7)]


def test_closed_segment_is_flushed_with_its_side_files_by_the_next_job() -> None:
    """Rolling blocks nobody: the next flush makes the closed segment durable."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem, segment_bytes=162, index_interval_bytes=50)
    for number in range(3):
        append(log, timestamp=1_000 + number)
    assert (log.needs_flush, filesystem.listdir(FOLDER)) == (
        True,
        ["00000000000000000000.log", "00000000000000000002.log"],
    )
    log.flush()
    assert not log.needs_flush
    assert filesystem.listdir(FOLDER) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000002.log",
        "00000000000000000002.snapshot",
        "leader-epoch-checkpoint",
        "ottla-ledger",
    ]
    assert filesystem.read_bytes(f"{FOLDER}/00000000000000000000.index").hex() == (
        "0000000100000051"
    )
    assert filesystem.read_bytes(f"{FOLDER}/00000000000000000000.timeindex").hex() == (
        "00000000000003e900000001"
    )


def test_last_time_is_written_when_a_segment_is_closed() -> None:
    """The time index ends with the segment's greatest timestamp, whatever the interval."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem, segment_bytes=162)
    for timestamp in (1_000, 1_002, 1_001):
        append(log, timestamp=timestamp)
    log.flush()
    assert filesystem.read_bytes(f"{FOLDER}/00000000000000000000.timeindex").hex() == (
        "00000000000003ea00000001"
    )


def test_failed_fsync_is_fatal_for_the_directory() -> None:
    """After a failed fsync the pages are gone: trying again would lie."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    append(log)
    job = log.prepare_flush()
    filesystem.fault = lambda operation, _: (
        OSError(errno.EIO, "Input/output error") if operation == "fsync" else None
    )
    with pytest.raises(DirectoryFailed, match=r"could not flush: Input/output error.*offline"):
        job.run()
    assert log.flush_state.recovery_point == 0


def test_full_disk_postpones_side_files_but_not_the_flush() -> None:
    """Indexes can be made again; records that were written are flushed all the same."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem, segment_bytes=162)
    for _ in range(3):
        append(log)
    filesystem.capacity_bytes = 3 * 81
    log.flush()
    assert (log.flush_state.recovery_point, log.needs_flush) == (3, True)
    filesystem.capacity_bytes = None
    log.flush()
    assert (log.needs_flush, filesystem.exists(f"{FOLDER}/00000000000000000000.timeindex")) == (
        False,
        True,
    )


def test_checkpoint_leaves_nothing_to_read_again() -> None:
    """After it a restart reads two headers, to prove the index, the last interval, and once
    more the end, for what producers sent before their last batches.
    """
    filesystem = MemoryFileSystem()
    log = open_log(filesystem, index_interval_bytes=500)
    for sequence in range(100):
        append(log, producer_id=7, producer_epoch=0, sequence=sequence)
    log.flush(checkpoint=True)
    filesystem.crash()
    reads: list[str] = []
    filesystem.fault = lambda operation, path: reads.append(path) if operation == "read" else None
    log = open_log(filesystem, recovery_point=100, index_interval_bytes=500)
    assert (log.log_end_offset, log.recovery.scanned_bytes) == (100, 0)
    assert [entry.last_sequence for entry in log.producers.described()] == [99]
    assert sum(path.endswith(".log") for path in reads) == 4


def test_two_loose_snapshots_are_kept() -> None:
    """The newest, and the one that the recovery point checkpoint of before may need."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    for _ in range(4):
        append(log)
        log.flush(checkpoint=True)
    kept = [name for name in filesystem.listdir(FOLDER) if name.endswith(".snapshot")]
    assert kept == ["00000000000000000003.snapshot", "00000000000000000004.snapshot"]


def test_flush_that_was_overtaken_by_a_truncation_promises_nothing() -> None:
    """What stands below its target may have been written after it."""
    log = open_log()
    for _ in range(3):
        append(log)
    job = log.prepare_flush()
    job.run()
    truncate_to(log, 1, 1_000)
    append(log)
    append(log)
    log.on_flushed(job)
    assert (
        log.flush_state.recovery_point,
        log.log_end_offset - log.flush_state.recovery_point,
    ) == (0, 3)


def test_segments_may_be_deleted_while_they_are_flushed() -> None:
    """Retention does not wait for the flush, nor does it make it fail."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem, segment_bytes=162, retention_ms=100)
    for timestamp in (1_000, 1_000, 2_000, 2_000, 3_000):
        append(log, timestamp=timestamp)
    job = log.prepare_flush()
    for deletion in delete_old_segments(log, 1_500, 5):
        deletion.run()
    job.run()
    append(log, timestamp=3_000)
    append(log, timestamp=3_000)
    log.on_flushed(job)
    assert (
        log.flush_state.recovery_point,
        [segment.base_offset for segment in log.flush_state.rolled],
    ) == (5, [4])


def test_closed_log_refuses_reads_and_writes() -> None:
    """Nothing is lost silently after the end."""
    log = open_log()
    log.close(clean=True)
    with pytest.raises(StorageError, match="closed"):
        append(log)
    with pytest.raises(StorageError, match="closed"):
        log.read(0, 1, max_offset=0)


def test_log_needs_a_flush_when_flush_messages_offsets_are_not_flushed() -> None:
    """Counted from the recovery point to the log end, as Kafka does: gaps in a copy count, too."""
    log = open_log(flush_messages=5)
    append(log, 4)
    assert not log.needs_flush
    append(log)
    assert log.needs_flush
    log.flush()
    assert not log.needs_flush
    log.append_as_follower(batch(2, base_offset=8, leader_epoch=0), 1_000)
    assert log.needs_flush
    truncate_to(log, 8, 1_000)
    assert not log.needs_flush


def test_a_first_flush_with_a_ledger_flushes_the_folder_once() -> None:
    """The ledger's new name and those of the other files become durable together."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    filesystem.fsync_directory("/")
    filesystem.fsync_directory("/kafka")
    append(log)
    log.ledger.history.delete(0, 1, StartCause.RETENTION_TIME, 1_000)
    synced: list[str] = []

    def note(operation: str, path: str) -> None:
        if operation == "fsync" and path == FOLDER:
            synced.append(path)

    filesystem.fault = note
    log.flush(checkpoint=True)
    assert synced == [FOLDER]
    assert not log.ledger.has_news
    filesystem.fault = None
    filesystem.crash(Random(1))
    assert len(filesystem.listdir(FOLDER)) > 4


def test_an_opened_log_lists_its_folder_once() -> None:
    """A start opens thousands."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    append(log)
    log.close(clean=True)
    listed: list[str] = []

    def note(operation: str, path: str) -> None:
        if operation == "list":
            listed.append(path)

    filesystem.fault = note
    open_log(filesystem, clean=True, recovery_point=1)
    assert listed == [FOLDER]
