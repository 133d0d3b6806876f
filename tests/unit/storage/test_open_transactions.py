"""Laws of transactions in a log: guards, coordinators' batches, and the last stable offset."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.record.builder import BatchBuilder
from ottla.record.header import read_header
from ottla.storage.log.log import Log

from .batches import marker, parsed
from .logs import append, open_log

TRANSACTIONAL = 0x10


def begin(log: Log, sequence: int = 0) -> int:
    """Producer 7's batch in its transaction; returns its offset."""
    appended = append(
        log, 1, attributes=TRANSACTIONAL, producer_id=7, producer_epoch=0, sequence=sequence
    )
    return appended.base_offset


def end(log: Log, *, epoch: int = 0) -> None:
    encoded = marker(commit=True, producer_id=7, producer_epoch=epoch, coordinator_epoch=0)
    log.append_as_leader(*parsed(encoded), 0, 1_000)


def test_deleted_records_hold_no_reader_below_the_logs_start() -> None:
    """An open transaction whose first records are gone counts from where the log begins."""
    log = open_log()
    begin(log)
    append(log, 4)
    assert log.producers.last_stable_offset(5, log.log_start_offset) == 0
    log.advance_log_start(3)
    assert log.producers.last_stable_offset(5, log.log_start_offset) == 3


def test_a_coordinators_batch_counts_no_sequence() -> None:
    """It writes offsets on behalf of a producer, whose own next batch follows its own last one."""
    log = open_log()
    begin(log)
    builder = BatchBuilder(producer_id=7, producer_epoch=0, transactional=True)
    builder.append(0, b"group", b"offset")
    batch = builder.build()
    log.append_as_leader(memoryview(batch), read_header(batch), 0, 1_000)
    assert begin(log, sequence=1) == 2
    assert log.producers.entries[7].last_sequence == 1
    log.close(clean=True)


def test_a_coordinators_batch_of_an_old_epoch_is_fenced() -> None:
    """As the producer's own would be."""
    log = open_log()
    begin(log)
    end(log, epoch=1)
    builder = BatchBuilder(producer_id=7, producer_epoch=0, transactional=True)
    builder.append(0, b"group", b"offset")
    batch = builder.build()
    with pytest.raises(OttlaError) as raised:
        log.append_as_leader(memoryview(batch), read_header(batch), 0, 1_000)
    assert raised.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_guard_holds_until_a_marker_or_the_first_batch() -> None:
    """After the batch the transaction is known to be open, and no guard is needed."""
    log = open_log()
    producers = log.producers
    guard = producers.guard(7)
    assert producers.guard(7) is guard
    assert producers.is_guarded(7, guard)
    end(log)
    assert not producers.is_guarded(7, guard)
    guard = producers.guard(7)
    begin(log)
    assert not producers.is_guarded(7, guard)
    assert producers.is_open(7, 0)
    assert not producers.is_open(7, 1)
