"""Directed scenarios: what went wrong elsewhere, step by step (S21 to S25)."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.transaction.transaction import Markers, ProducerIdentity, TransactionState
from tests.unit.transaction.driver import NEW, OLD, T0, T1, TIMEOUT_MS, Driver
from tests.unit.transaction.world import Log

NONE = ErrorCode.NONE


def write(log: Log, driver: Driver, who: ProducerIdentity, sequence: int, version: int) -> None:
    """The first batch of a transaction in T0, as a leader takes it."""
    guard = log.producers.guard(who.producer_id)
    if version == NEW:
        assert driver.add(who, T0) is NONE
    else:
        assert driver.verify(who, T0) == [NONE]
    log.append(who, sequence, ("x", sequence), guard)


def spread(driver: Driver, log: Log, epoch: int = 0) -> Markers:
    """Write the one outcome on its way to `log`, and complete it."""
    (markers,) = driver.markers
    log.end(markers, epoch)
    driver.deliver()
    return markers


def test_s21_a_produce_delayed_until_after_the_abort_is_refused() -> None:
    """KAFKA-14402: a client of old, whose epoch stays. Nobody has the transaction open, so that
    the last stable offset is not held back for ever."""
    driver, log = Driver(), Log()
    who = driver.begin()
    driver.add(who, T0, version=OLD)
    write(log, driver, who, 0, OLD)
    driver.end(who, commit=False, version=OLD)
    spread(driver, log)
    assert driver.verify(who, T0) == [ErrorCode.TRANSACTION_ABORTABLE]
    with pytest.raises(OttlaError) as raised:
        log.append(who, 1, ("x", 1), None)
    assert raised.value.code is ErrorCode.INVALID_TXN_STATE
    assert log.producers.first_unstable_offset() == 0  # Until the marker is committed.
    log.producers.on_high_watermark(2)
    assert log.producers.first_unstable_offset() is None


def test_s21_an_end_between_the_coordinators_answer_and_the_append_is_noticed() -> None:
    """The answer was given for a transaction that is over: it must be asked anew."""
    driver, log = Driver(), Log()
    who = driver.begin()
    driver.add(who, T0, version=OLD)
    guard = log.producers.guard(who.producer_id)
    assert driver.verify(who, T0) == [NONE]
    driver.end(who, commit=False, version=OLD)
    spread(driver, log)
    assert not log.producers.is_guarded(who.producer_id, guard)
    with pytest.raises(OttlaError) as raised:
        log.append(who, 0, ("x", 0), guard)
    assert raised.value.code is ErrorCode.INVALID_TXN_STATE


def test_s22_a_delayed_commit_does_not_end_the_next_transaction() -> None:
    """Its epoch is that of the transaction before (KIP-890); each is as its producer wanted."""
    driver, log = Driver(), Log()
    first = driver.begin()
    write(log, driver, first, 0, NEW)
    second = driver.end(first, commit=True).identity
    spread(driver, log)
    write(log, driver, second, 0, NEW)
    assert driver.end(first, commit=True).code is ErrorCode.PRODUCER_FENCED
    assert driver.state() is TransactionState.ONGOING
    assert driver.end(second, commit=False).code is NONE
    spread(driver, log)
    assert log.committed() == [("x", 0)]
    assert len(log.entries) == 4


def test_s23_a_new_coordinator_writes_what_was_decided() -> None:
    """The one before died between its decision and the markers; one partition knew already."""
    driver, known, unknown = Driver(), Log(), Log()
    who = driver.begin()
    for partition, log in ((T0, known), (T1, unknown)):
        guard = log.producers.guard(who.producer_id)
        driver.add(who, partition)
        log.append(who, 0, ("x", 0), guard)
    driver.end(who)
    (first,) = driver.markers
    known.end(first, 0)
    driver.restart()
    (again,) = driver.markers
    assert again == first
    for log in (known, unknown):
        log.end(again, 1)
    driver.deliver()
    assert driver.state() is TransactionState.COMPLETE_COMMIT
    assert [len(log.entries) for log in (known, unknown)] == [2, 2]
    assert known.committed() == unknown.committed() == [("x", 0)]


def test_s23_an_open_transaction_survives_its_coordinator() -> None:
    """With the time it has left."""
    driver = Driver()
    who = driver.begin()
    driver.add(who)
    driver.now_ms += TIMEOUT_MS
    driver.restart()
    driver.carry_out(driver.coordinator.abort_overdue(driver.now_ms))
    assert driver.state() is TransactionState.ONGOING
    driver.carry_out(driver.coordinator.abort_overdue(driver.now_ms + 1))
    assert driver.state() is TransactionState.PREPARE_ABORT


@pytest.mark.parametrize("version", [OLD, NEW])
def test_s24_a_zombie_can_do_nothing(version: int) -> None:
    """Not produce, not add, not end, not begin again with what it had."""
    driver, log = Driver(), Log()
    zombie = driver.begin()
    driver.add(zombie, T0, version=version)
    write(log, driver, zombie, 0, version)
    assert driver.init().code is ErrorCode.CONCURRENT_TRANSACTIONS
    spread(driver, log)
    alive = driver.begin()
    with pytest.raises(OttlaError) as raised:
        log.append(zombie, 1, ("x", 1), log.producers.guard(zombie.producer_id))
    assert raised.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert driver.add(zombie, version=version) is ErrorCode.PRODUCER_FENCED
    assert driver.end(zombie, version=version).code is ErrorCode.PRODUCER_FENCED
    assert driver.init(had=zombie).code is ErrorCode.PRODUCER_FENCED
    assert driver.add(alive, version=version) is NONE
    assert log.committed() == []


def test_s25_a_marker_that_comes_twice_stands_once() -> None:
    """And one that comes late does not end the next transaction (KIP-1228)."""
    driver, log = Driver(), Log()
    first = driver.begin()
    write(log, driver, first, 0, NEW)
    second = driver.end(first).identity
    markers = spread(driver, log)
    log.end(markers, 0)
    assert len(log.entries) == 2
    write(log, driver, second, 0, NEW)
    with pytest.raises(OttlaError) as raised:
        log.end(markers, 0)
    assert raised.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.producers.is_open(*second)


def test_s25_a_coordinator_of_the_past_marks_nothing() -> None:
    """The partition has heard of a later term of `__transaction_state`."""
    driver, log = Driver(), Log()
    first = driver.begin()
    write(log, driver, first, 0, NEW)
    second = driver.end(first).identity
    spread(driver, log, epoch=5)
    write(log, driver, second, 0, NEW)
    driver.end(second)
    with pytest.raises(OttlaError) as raised:
        log.end(driver.markers[0], 4)
    assert raised.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
