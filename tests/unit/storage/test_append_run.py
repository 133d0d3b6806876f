"""Laws of batches that are appended together: as if one after the other, or not at all."""

import errno

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.record.arrival import Arrived, BatchRun
from ottla.record.header import read_header
from ottla.storage.disk.errors import DirectoryFailed, DiskFull
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.log.append_run import append_run, can_append_run
from ottla.storage.log.log import Log
from ottla.storage.segment.config import LogConfig

from .batches import batch, parsed
from .logs import FOLDER, NOW_MS, append, open_log, ranges

LOG = f"{FOLDER}/00000000000000000000.log"
# Of 81, 82 and 2,061 bytes; 1, 3 and 2 records.
SHAPES = ((1, b"x" * 20), (3, b"y" * 21), (2, b"z" * 2000))


def run_of(count: int = 3, **fields: int) -> BatchRun:
    """Batches of several sizes; with a producer, its next ones from `sequence` on."""
    run: BatchRun | None = None
    sequence = fields.pop("sequence", -1)
    for number in range(count):
        records, payload = SHAPES[number % len(SHAPES)]
        view, header = parsed(batch(records, payload=payload, sequence=sequence, **fields))
        run = BatchRun(header) if run is None else run
        delta, sequence_sent = header.last_offset_delta, header.base_sequence
        arrived = Arrived(number, 0, header.size, delta, header.max_timestamp, sequence_sent)
        run.add(arrived, view)
        if sequence >= 0:
            sequence += records
    assert run is not None
    return run


def one(fields: dict[str, int]) -> bytearray:
    return batch(1, payload=b"x" * 20, **fields)


def together(log: Log, leader_epoch: int = 0, count: int = 3, **fields: int) -> int:
    run = run_of(count, **fields)
    assert can_append_run(log, run, NOW_MS)
    return append_run(log, run, leader_epoch)


def content(filesystem: MemoryFileSystem) -> bytes:
    return filesystem.read_bytes(LOG)


def state(log: Log) -> tuple[object, ...]:
    """Everything that an append changes."""
    active = log.segments.active
    return (
        log.log_end_offset,
        log.log_end_offset - log.flush_state.recovery_point,
        log.leader_epochs.latest,
        active.size,
        active.indexes.max_timestamp,
        active.indexes.max_timestamp_offset,
        active.first_timestamp,
        active.indexes.offsets.encode(),
        active.indexes.times.encode(),
    )


@pytest.mark.parametrize("producer_id", [-1, 7])
def test_a_run_leaves_what_its_batches_one_by_one_leave(producer_id: int) -> None:
    """File, indexes, epochs and what is known of the producer are the same."""
    epoch = min(producer_id, 0)

    def fields(records_before: int, timestamp: int) -> dict[str, int]:
        sequence = records_before if producer_id >= 0 else -1
        return {
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "sequence": sequence,
            "timestamp": timestamp,
        }

    disks = [MemoryFileSystem(), MemoryFileSystem()]
    one_by_one, at_once = (open_log(disk, index_interval_bytes=100) for disk in disks)
    for log in (one_by_one, at_once):
        log.append_as_leader(*parsed(one(fields(0, 1_000))), 0, NOW_MS)
    for number in range(3):
        same = fields(1 + 6 * number, 1_000 + number)
        for view in run_of(**same).batches:
            one_by_one.append_as_leader(view, read_header(view), 4, NOW_MS)
        assert together(at_once, 4, **same) == 1 + 6 * number
    assert content(disks[0]) == content(disks[1])
    assert state(one_by_one) == state(at_once)
    assert ranges(at_once)[:4] == [(0, 0), (1, 1), (2, 4), (5, 6)]
    if producer_id >= 0:
        entries = [log.producers.entries[producer_id].batches for log in (one_by_one, at_once)]
        assert entries[0] == entries[1]
        assert [kept.last_offset for kept in entries[1]] == [10, 12, 13, 16, 18]


@pytest.mark.parametrize("capacity_bytes", [81, 100, 81 + 82, 81 + 81 + 82 + 2060])
def test_a_run_that_does_not_fit_on_the_disk_leaves_nothing(capacity_bytes: int) -> None:
    """Wherever in it the space ends; afterwards the log goes on."""
    filesystem = MemoryFileSystem(capacity_bytes=capacity_bytes)
    log = open_log(filesystem)
    append(log, producer_id=7, producer_epoch=0, sequence=0)
    before = state(log)
    with pytest.raises(DiskFull):
        together(log, 3, producer_id=7, producer_epoch=0, sequence=1)
    assert state(log) == before
    assert (filesystem.size(LOG), ranges(log)) == (81, [(0, 0)])
    filesystem.capacity_bytes = None
    assert together(log, 3, producer_id=7, producer_epoch=0, sequence=1) == 1


def test_a_disk_that_fails_in_a_run_is_not_trusted_again() -> None:
    """As with a single batch."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    append(log)
    filesystem.fault = lambda operation, _: (
        OSError(errno.EIO, "Input/output error") if operation == "append" else None
    )
    with pytest.raises(DirectoryFailed, match="could not append a batch: Input/output error"):
        together(log)


@pytest.mark.parametrize(
    "config",
    [
        LogConfig(segment_bytes=81 + 81 + 82 + 2060),
        LogConfig(segment_index_bytes=3 * 12, index_interval_bytes=0),
        LogConfig(segment_ms=500),
    ],
)
def test_a_run_that_needs_a_new_segment_goes_one_by_one(config: LogConfig) -> None:
    """Bytes, the time index, or the age of the segment."""
    log = open_log(config=config)
    append(log, timestamp=400)
    run = run_of()
    assert not can_append_run(log, run, NOW_MS)


@pytest.mark.parametrize(("before", "fits"), [(10, True), (11, False)])
def test_a_run_that_fills_the_offset_index_goes_one_by_one(before: int, fits: bool) -> None:
    """Where all have one timestamp it fills sooner than the time index."""
    log = open_log(segment_index_bytes=12 * 8, index_interval_bytes=0)
    for _ in range(before):
        append(log)
    run = run_of()
    assert can_append_run(log, run, NOW_MS) == fits


def test_the_first_batch_of_a_segment_goes_by_itself() -> None:
    """It tells the age of the segment."""
    run = run_of()
    assert not can_append_run(open_log(), run, NOW_MS)


def test_a_run_of_a_producer_that_is_not_known_goes_one_by_one() -> None:
    """What comes first may be judged by more than its sequence."""
    log = open_log()
    append(log)
    run = run_of(producer_id=7, producer_epoch=0, sequence=0)
    assert not can_append_run(log, run, NOW_MS)


def test_a_repeated_run_is_not_appended_again() -> None:
    """One by one its batches are told from new ones, and their first offsets are answered."""
    log = open_log()
    append(log, producer_id=7, producer_epoch=0, sequence=0)
    together(log, producer_id=7, producer_epoch=0, sequence=1)
    run = run_of(producer_id=7, producer_epoch=0, sequence=1)
    assert not can_append_run(log, run, NOW_MS)


def test_a_run_out_of_order_is_refused() -> None:
    """With the error that its first batch would get."""
    log = open_log()
    append(log, producer_id=7, producer_epoch=0, sequence=0)
    run = run_of(producer_id=7, producer_epoch=0, sequence=5)
    with pytest.raises(OttlaError) as caught:
        can_append_run(log, run, NOW_MS)
    assert caught.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_log_out_of_use_takes_no_run() -> None:
    log = open_log()
    append(log)
    run = run_of()
    assert can_append_run(log, run, NOW_MS)
    log.offline = "the disk has failed"
    assert not can_append_run(log, run, NOW_MS)


def test_what_a_run_appended_survives_a_restart() -> None:
    """Recovery reads it like any other batch."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    append(log)
    together(log, 2)
    log.flush()
    again = open_log(filesystem)
    assert ranges(again) == [(0, 0), (1, 1), (2, 4), (5, 6)]
    assert read_header(content(filesystem), 81).leader_epoch == 2
