"""Laws of truncation: the end that the leader does not have goes, with all that was known of it."""

from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.log.truncation import end_truncated_to, truncate_to

from .batches import batch, marker, parsed
from .logs import append, open_log, ranges


def test_a_cut_in_a_gap_ends_before_the_gap() -> None:
    """What compaction has emptied is no place to end at: a restart would find the end before it."""
    log = open_log()
    for base_offset in (0, 7):
        log.append_as_follower(batch(2, base_offset=base_offset, leader_epoch=0), 1_000)
    log.flush()
    assert end_truncated_to(log, 5) == 2
    truncate_to(log, 5, 1_000)
    assert log.log_end_offset == 2
    log.flush()
    assert (
        open_log(log.filesystem, recovery_point=log.flush_state.recovery_point).log_end_offset == 2
    )


def test_truncated_log_ends_there_and_goes_on() -> None:
    """Offsets are given again."""
    log = open_log(segment_bytes=162)
    for _ in range(7):
        append(log)
    for deletion in truncate_to(log, 3, 1_000):
        deletion.run()
    assert (log.log_end_offset, ranges(log)) == (3, [(0, 0), (1, 1), (2, 2)])
    assert append(log).base_offset == 3


def test_batch_that_reaches_over_the_place_goes_whole() -> None:
    """A batch is never split, so the log may end before the offset."""
    log = open_log()
    append(log, 2)
    append(log, 5)
    truncate_to(log, 4, 1_000)
    assert (log.log_end_offset, ranges(log)) == (2, [(0, 1)])


def test_truncation_above_the_end_does_nothing() -> None:
    """There is nothing to drop."""
    log = open_log()
    append(log)
    assert (truncate_to(log, 1, 1_000), log.log_end_offset) == ([], 1)


def test_truncation_below_the_start_begins_anew_there() -> None:
    """The leader's log begins elsewhere."""
    filesystem = MemoryFileSystem()
    log = open_log(filesystem)
    for _ in range(4):
        append(log)
    log.advance_log_start(3)
    for deletion in truncate_to(log, 1, 1_000):
        deletion.run()
    assert (log.log_start_offset, log.log_end_offset) == (1, 1)
    assert append(log).base_offset == 1
    log.close(clean=True)
    again = open_log(filesystem, clean=True, recovery_point=2)
    assert ranges(again) == [(1, 1)]


def test_indexes_forget_what_was_dropped() -> None:
    """As if the dropped records had never been."""
    log, expected = (open_log(index_interval_bytes=100) for _ in range(2))
    for number in range(40):
        append(log, timestamp=1_000 + number)
        if number < 20:
            append(expected, timestamp=1_000 + number)
    truncate_to(log, 20, 1_000)
    assert (
        log.segments.active.indexes.offsets.encode()
        == expected.segments.active.indexes.offsets.encode()
    )
    assert (
        log.segments.active.indexes.times.encode()
        == expected.segments.active.indexes.times.encode()
    )
    assert log.segments.active.indexes.max_timestamp == 1_019


def test_remembered_places_are_forgotten() -> None:
    """A reader that had stopped at the old end finds the new batch of that offset."""
    log = open_log()
    for _ in range(3):
        append(log)
    assert log.read(2, 1_000, max_offset=3).position == 162
    truncate_to(log, 1, 1_000)
    append(log, 2, payload=b"a longer payload than before")
    append(log, payload=b"behind")
    assert log.read(3, 1_000, max_offset=4).position == 81 + 89


def test_epochs_and_producers_of_dropped_records_are_forgotten() -> None:
    """A retry of what was dropped is new again (P19, S27)."""
    log = open_log()
    for number in range(4):
        append(log, leader_epoch=number, producer_id=7, producer_epoch=0, sequence=number)
        if number == 1:
            log.flush(checkpoint=True)
    truncate_to(log, 3, 1_000)
    assert log.leader_epochs.entries == [(0, 0), (1, 1), (2, 2)]
    retried = append(log, leader_epoch=5, producer_id=7, producer_epoch=0, sequence=3)
    assert (retried.base_offset, retried.duplicate) == (3, False)


def test_recovery_point_does_not_pass_the_end() -> None:
    """What is dropped is no longer promised."""
    log = open_log()
    for _ in range(4):
        append(log)
    log.flush()
    truncate_to(log, 2, 1_000)
    assert (
        log.flush_state.recovery_point,
        log.log_end_offset - log.flush_state.recovery_point,
    ) == (2, 0)


def test_aborted_transactions_of_dropped_records_are_forgotten() -> None:
    """The index of a truncated segment has no marker above its end."""
    log = open_log()
    append(log, producer_id=7, producer_epoch=0, sequence=0, attributes=0x10)
    log.append_as_leader(*parsed(marker(commit=False, producer_id=7)), 0, 1_000)
    truncate_to(log, 1, 1_000)
    assert log.segments.aborted_transactions(0, 9) == []
    assert log.producers.last_stable_offset(1, log.log_start_offset) == 0


def test_end_offset_of_an_epoch_tells_where_histories_part() -> None:
    """KIP-101 and KIP-279: the asked or next lower epoch, and where the next one begins (P19)."""
    log = open_log()
    for epoch in (1, 1, 3, 5):
        append(log, leader_epoch=epoch)
    assert [log.end_offset_for_epoch(epoch) for epoch in range(-1, 7)] == [
        (-1, -1),
        (0, 0),
        (1, 2),
        (1, 2),
        (3, 3),
        (3, 3),
        (5, 4),
        (-1, -1),
    ]
