"""Laws of InitProducerId with a transactional id."""

from dataclasses import replace

from ottla.base.errors import ErrorCode
from ottla.transaction.coordinator import TransactionSettings
from ottla.transaction.transaction import (
    EPOCH_MAX,
    ProducerIdentity,
    TransactionRecord,
    TransactionState,
)
from tests.unit.transaction.driver import NEW, OLD, T0, Driver


def test_a_new_id_begins_in_epoch_0() -> None:
    """Each transactional id has a producer id of its own."""
    driver = Driver()
    assert driver.init("x") == (ErrorCode.NONE, (1001, 0))
    assert driver.init("y") == (ErrorCode.NONE, (1002, 0))


def test_who_begins_anew_fences_its_predecessors() -> None:
    """The id stays, the epoch rises."""
    driver = Driver()
    first = driver.begin()
    assert driver.init() == (ErrorCode.NONE, (1001, 1))
    assert driver.add(first) is ErrorCode.PRODUCER_FENCED


def test_an_open_transaction_is_aborted_before_anybody_gets_its_id() -> None:
    """The answer is CONCURRENT_TRANSACTIONS until its markers are written; then comes an epoch
    that nobody ever had."""
    driver = Driver()
    first = driver.begin()
    driver.add(first)
    assert driver.init().code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert driver.waits
    assert driver.state() is TransactionState.PREPARE_ABORT
    assert [(each.is_commit, each.identity) for each in driver.markers] == [(False, (1001, 1))]
    assert driver.init().code is ErrorCode.CONCURRENT_TRANSACTIONS
    driver.deliver()
    assert driver.init() == (ErrorCode.NONE, (1001, 2))


def test_a_producer_goes_on_after_an_error() -> None:
    """With id and epoch in its request it gets the next one (KIP-360)."""
    driver = Driver()
    first = driver.begin()
    assert driver.init(had=first) == (ErrorCode.NONE, (1001, 1))


def test_a_repeated_request_gets_the_same_epoch() -> None:
    """The answer to the first was lost; after a change of coordinator, too."""
    driver = Driver()
    first = driver.begin()
    driver.init(had=first)
    assert driver.init(had=first) == (ErrorCode.NONE, (1001, 1))
    driver.restart()
    assert driver.init(had=first) == (ErrorCode.NONE, (1001, 1))


def test_a_fenced_producer_cannot_go_on() -> None:
    """Another began meanwhile: to name what one had does not help."""
    driver = Driver()
    first = driver.begin()
    driver.begin()
    assert driver.init(had=first).code is ErrorCode.PRODUCER_FENCED
    assert driver.init(had=ProducerIdentity(7, 0)).code is ErrorCode.PRODUCER_FENCED


def test_a_late_request_does_not_abort_a_later_transaction() -> None:
    """It names an epoch before that of the transaction."""
    driver = Driver()
    first = driver.begin()
    second = driver.begin()
    driver.add(second)
    assert driver.init(had=first).code is ErrorCode.PRODUCER_FENCED
    assert driver.state() is TransactionState.ONGOING


def test_a_timeout_must_be_within_bounds() -> None:
    """0 < timeout <= transaction.max.timeout.ms."""
    driver = Driver(TransactionSettings(max_timeout_ms=1000))
    assert driver.init(timeout_ms=1000).code is ErrorCode.NONE
    for timeout_ms in (1001, 0, -1):
        assert driver.init(timeout_ms=timeout_ms).code is ErrorCode.INVALID_TRANSACTION_TIMEOUT


def _with_epoch(driver: Driver, epoch: int) -> ProducerIdentity:
    """Let the id be in its `epoch`."""
    driver.begin()
    changed = replace(driver.transaction(), producer_epoch=epoch)
    driver.coordinator.apply(TransactionRecord("x", changed))
    return changed.identity


def test_used_up_epochs_bring_a_new_producer_id() -> None:
    """No client ever gets the last epoch: that one is left for fencing it."""
    driver = Driver()
    last = _with_epoch(driver, EPOCH_MAX - 1)
    assert driver.init(had=last) == (ErrorCode.NONE, (1002, 0))
    assert driver.init(had=last) == (ErrorCode.NONE, (1002, 0))


def test_the_last_epoch_can_be_fenced() -> None:
    """An open transaction in it is aborted under the epoch left for that."""
    driver = Driver()
    last = _with_epoch(driver, EPOCH_MAX - 1)
    driver.add(last, T0, version=OLD)
    assert driver.init().code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert driver.markers[0].identity == (1001, EPOCH_MAX)
    driver.deliver()
    assert driver.init() == (ErrorCode.NONE, (1003, 0))


def test_epochs_that_run_out_at_the_end_of_a_transaction() -> None:
    """The producer goes on with another id, which its coordinator has prepared (KIP-890)."""
    driver = Driver()
    last = _with_epoch(driver, EPOCH_MAX - 1)
    driver.add(last, T0, version=NEW)
    answered = driver.end(last)
    assert answered == (ErrorCode.NONE, (1002, 0))
    assert driver.markers[0].identity == (1001, EPOCH_MAX)
    assert driver.add(answered.identity) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert driver.end(last).code is ErrorCode.CONCURRENT_TRANSACTIONS
    driver.deliver()
    assert driver.end(last) == (ErrorCode.NONE, (1002, 0))
    assert driver.add(answered.identity) is ErrorCode.NONE
