"""Batches that are sent again or leave a gap, as one log sees them (S27)."""

from collections.abc import Callable

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.log.log import Log
from ottla.storage.log.retention import delete_old_segments
from tests.unit.storage.compacting import add, clean, compacted_log
from tests.unit.storage.logs import append, open_log, ranges

from . import idempotence_mutants as mutants
from .mutants import Mutate

LAST_SEQUENCE = 2**31 - 1


def _send(log: Log, sequence: int, count: int = 1, **more: int) -> tuple[int, bool]:
    """Where the batch stands, and whether it stood there already."""
    appended = append(log, count, producer_id=7, producer_epoch=0, sequence=sequence, **more)
    return appended.base_offset, appended.duplicate


def s27_a_batch_whose_predecessor_is_missing() -> None:
    """It is refused: the one before may still come."""
    log = open_log()
    _send(log, 0)
    with pytest.raises(OttlaError) as raised:
        _send(log, 2)
    assert raised.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert ranges(log) == [(0, 0)]
    assert _send(log, 1) == (1, False)


def s27_a_batch_comes_again_after_many_later_ones() -> None:
    """A client's threads may put it back so late; it is one that was appended, and no gap."""
    log = open_log()
    for number in range(9):
        _send(log, number)
    for number in (0, 3):
        assert _refusal(log, number) is ErrorCode.DUPLICATE_SEQUENCE_NUMBER
    assert _send(log, 9) == (9, False)


def s27_a_batch_comes_that_was_lost_before_this_log_knew_its_producer() -> None:
    """It must not be called appended: its producer would take that for an acknowledgement."""
    log = open_log()
    for number in range(4, 12):
        _send(log, number)
    assert _refusal(log, 3) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def _refusal(log: Log, sequence: int) -> ErrorCode:
    before = ranges(log)
    with pytest.raises(OttlaError) as raised:
        _send(log, sequence)
    assert ranges(log) == before
    return raised.value.code


def s27_numbers_begin_again_after_the_last() -> None:
    """After 2^31-1 comes 0, also within a batch, and retries are known on both sides."""
    log = open_log()
    log.append_as_follower(_first_of_life(LAST_SEQUENCE - 1), 1_000)
    assert _send(log, LAST_SEQUENCE, 2) == (1, False)
    assert _send(log, LAST_SEQUENCE, 2) == (1, True)
    assert _send(log, 1) == (3, False)
    assert _send(log, 1) == (3, True)


def _first_of_life(sequence: int) -> bytes:
    source = open_log()
    appended = append(source, producer_id=7, producer_epoch=0, sequence=sequence)
    assert appended.base_offset == 0
    return source.segments.active.file.pread(source.segments.active.size, 0)


def s27_a_batch_is_sent_again_after_retention_took_it() -> None:
    """Its records are gone, but not that they were there; a restart changes nothing of that."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem, segment_bytes=100, retention_ms=100)
    _send(log, 0, timestamp=1_000)
    append(log, timestamp=9_000)
    append(log, timestamp=9_000)
    for deletion in delete_old_segments(log, 9_000, 3):
        deletion.run()
    assert log.log_start_offset == 1
    assert _send(log, 0) == (0, True)
    log.close(clean=True)
    log = open_log(filesystem, log_start_offset=1, recovery_point=3, clean=True)
    assert _send(log, 0) == (0, True)
    assert _send(log, 1) == (3, False)


def s27_a_batch_is_sent_again_after_compaction_took_its_records() -> None:
    """A header of it stays, from which a log without snapshots knows it."""
    filesystem = MemoryFileSystem()
    log = compacted_log(filesystem, segment_bytes=100)
    for number in range(2):
        add(log, [(b"k", b"%d" % number)], producer_id=7, producer_epoch=0, base_sequence=number)
    for number in range(4):
        add(log, [(b"k", b"x%d" % number)])
    clean(log)
    for snapshot in log.flush_state.snapshots:
        filesystem.unlink(f"{log.folder}/{snapshot:020d}.snapshot")
    log = compacted_log(filesystem, recovery_point=log.flush_state.recovery_point)
    assert _send(log, 1) == (1, True)


LogStory = Callable[[], None]
SCRIPTS: dict[LogStory, list[Mutate]] = {
    s27_a_batch_whose_predecessor_is_missing: [mutants.gaps_are_taken],
    s27_a_batch_comes_again_after_many_later_ones: [mutants.old_batches_are_gaps],
    s27_a_batch_comes_that_was_lost_before_this_log_knew_its_producer: [
        mutants.every_older_sequence_was_appended
    ],
    s27_numbers_begin_again_after_the_last: [mutants.sequences_do_not_wrap],
    s27_a_batch_is_sent_again_after_retention_took_it: [mutants.retention_forgets_producers],
    s27_a_batch_is_sent_again_after_compaction_took_its_records: [
        mutants.compaction_takes_the_last_batch
    ],
}
