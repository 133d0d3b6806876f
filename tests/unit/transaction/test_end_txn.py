"""Laws of adding to transactions and of ending them."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.transaction.coordinator import Filter, TransactionSettings, read_states
from ottla.transaction.transaction import ProducerIdentity, TransactionState
from tests.unit.transaction.driver import NEW, OLD, T0, T1, TIMEOUT_MS, TIMESTAMP, Driver

NONE = ErrorCode.NONE


def test_a_transaction_begins_with_its_first_partition() -> None:
    """Its timeout counts from there."""
    driver = Driver()
    who = driver.begin()
    driver.now_ms += 5
    assert driver.add(who, T0) is NONE
    driver.now_ms += 5
    assert driver.add(who, T1) is NONE
    known = driver.transaction()
    assert (known.state, known.partitions) == (TransactionState.ONGOING, frozenset({T0, T1}))
    assert known.start_timestamp_ms == TIMESTAMP + 5


def test_what_is_added_already_is_not_written_again() -> None:
    """Producers ask with every batch that does not know better."""
    driver = Driver()
    who = driver.begin()
    driver.add(who, T0, T1)
    written = len(driver.log)
    assert driver.add(who, T0) is NONE
    assert len(driver.log) == written


def test_only_the_producer_of_an_id_adds_to_it() -> None:
    """An unknown id, another's id, an old epoch."""
    driver = Driver()
    who = driver.begin()
    assert driver.add(who, name="y") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert driver.add(ProducerIdentity(7, 0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    driver.begin()
    assert driver.add(who) is ErrorCode.PRODUCER_FENCED


def test_verifying_adds_nothing() -> None:
    """A partition that is not in the transaction makes it abortable (KIP-890)."""
    driver = Driver()
    who = driver.begin()
    driver.add(who, T0, version=OLD)
    assert driver.verify(who, T0, T1) == [NONE, ErrorCode.TRANSACTION_ABORTABLE]
    assert driver.transaction().partitions == {T0}
    assert driver.verify(ProducerIdentity(7, 0), T0) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]


@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize("commit", [True, False])
def test_an_end_is_complete_when_its_markers_are_written(version: int, *, commit: bool) -> None:
    """Until then the producer's next transaction has to wait."""
    driver = Driver()
    who = driver.begin()
    driver.add(who, T0, T1, version=version)
    answered = driver.end(who, commit=commit, version=version)
    assert answered.code is NONE
    assert [(each.is_commit, each.partitions) for each in driver.markers] == [
        (commit, frozenset({T0, T1}))
    ]
    assert driver.add(answered.identity, version=version) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert driver.waits
    driver.deliver()
    state = TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT
    assert driver.state() is state
    assert driver.add(answered.identity, version=version) is NONE


def test_the_epoch_rises_with_each_transaction_of_a_new_client_only() -> None:
    """KIP-890; clients of old keep theirs, since they would not learn of another."""
    driver = Driver()
    who = driver.begin()
    driver.add(who, version=OLD)
    assert driver.end(who, version=OLD).identity == (1001, 0)
    driver.deliver()
    driver.add(who, version=NEW)
    assert driver.end(who, version=NEW).identity == (1001, 1)
    assert driver.markers[0].identity == (1001, 1)


@pytest.mark.parametrize("version", [OLD, NEW])
def test_who_asks_again_is_told_the_same(version: int) -> None:
    """The answer was lost: CONCURRENT_TRANSACTIONS while markers are written, then success."""
    driver = Driver()
    who = driver.begin()
    driver.add(who, version=version)
    first = driver.end(who, version=version)
    assert driver.end(who, version=version).code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert driver.end(who, commit=False, version=version).code is ErrorCode.INVALID_TXN_STATE
    driver.restart()
    driver.deliver()
    assert driver.end(who, version=version) == first
    assert driver.end(who, commit=False, version=version).code is ErrorCode.INVALID_TXN_STATE


def test_nothing_cannot_be_committed() -> None:
    """A new client may abort what perhaps never began: its epoch rises, nothing is marked."""
    driver = Driver()
    who = driver.begin()
    assert driver.end(who, version=OLD).code is ErrorCode.INVALID_TXN_STATE
    assert driver.end(who, commit=False, version=OLD).code is ErrorCode.INVALID_TXN_STATE
    assert driver.end(who, version=NEW).code is ErrorCode.INVALID_TXN_STATE
    assert driver.end(who, commit=False, version=NEW) == (NONE, (1001, 1))
    assert driver.state() is TransactionState.COMPLETE_ABORT
    assert driver.markers == []


def test_the_next_transaction_can_be_aborted_before_the_last_is_through() -> None:
    """It waits for that, and is not fenced."""
    driver = Driver()
    who = driver.begin()
    driver.add(who)
    second = driver.end(who).identity
    assert driver.end(second, commit=False).code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert driver.waits
    driver.deliver()
    assert driver.end(second, commit=False) == (NONE, (1001, 2))


@pytest.mark.parametrize("version", [OLD, NEW])
def test_what_takes_too_long_is_aborted(version: int) -> None:
    """And its producer is fenced, whatever it asks for then."""
    driver = Driver()
    who = driver.begin()
    driver.add(who, version=version)
    driver.now_ms += TIMEOUT_MS
    driver.carry_out(driver.coordinator.abort_overdue(driver.now_ms))
    assert driver.markers == []
    driver.now_ms += 1
    driver.carry_out(driver.coordinator.abort_overdue(driver.now_ms))
    assert [(each.is_commit, each.identity) for each in driver.markers] == [(False, (1001, 1))]
    for _ in range(2):
        for commit in (True, False):
            answered = driver.end(who, commit=commit, version=version)
            assert answered.code is ErrorCode.PRODUCER_FENCED
        assert driver.add(who, version=version) is ErrorCode.PRODUCER_FENCED
        driver.deliver()


def test_unused_ids_are_forgotten() -> None:
    """After transactional.id.expiration.ms; one with an open transaction never."""
    driver = Driver(TransactionSettings(id_expiration_ms=1000))
    driver.begin("idle")
    driver.add(driver.begin("open"), name="open")
    driver.now_ms += 999
    driver.carry_out(driver.coordinator.forget_unused(driver.now_ms))
    assert set(driver.coordinator.transactions) == {"idle", "open"}
    driver.now_ms += 1
    driver.carry_out(driver.coordinator.forget_unused(driver.now_ms))
    assert set(driver.coordinator.transactions) == {"open"}
    driver.restart()
    assert set(driver.coordinator.transactions) == {"open"}


def test_old_markers_complete_nothing() -> None:
    """Those of a coordinator before, or of a transaction that was ended otherwise."""
    driver = Driver()
    who = driver.begin()
    driver.add(who)
    driver.end(who)
    (sent,) = driver.markers
    driver.deliver()
    second = driver.transaction().identity
    driver.add(second)
    driver.carry_out(driver.coordinator.complete(sent, driver.now_ms))
    assert driver.state() is TransactionState.ONGOING


def test_what_was_marked_before_completes_no_later_end() -> None:
    """A coordinator that loads anew sends markers a second time; a client of old goes on in the
    same epoch, and its next end is not complete because the last one is."""
    driver = Driver()
    who = driver.begin()
    driver.add(who, version=OLD)
    driver.end(who, version=OLD)
    (first,) = driver.markers
    driver.restart()
    driver.deliver()
    driver.now_ms += 1
    driver.add(who, version=OLD)
    driver.end(who, version=OLD)
    driver.carry_out(driver.coordinator.complete(first, driver.now_ms))
    assert driver.state() is TransactionState.PREPARE_COMMIT
    driver.deliver()
    assert driver.state() is TransactionState.COMPLETE_COMMIT


def test_ids_are_listed_by_state_producer_age_and_name() -> None:
    """KIP-664, KIP-994, KIP-1152."""
    driver = Driver()
    driver.begin("idle")
    who = driver.begin("open")
    driver.add(who, TopicPartition("t", 0), name="open")
    driver.now_ms += 100

    def names(wanted: Filter) -> list[str]:
        return [name for name, _ in driver.coordinator.list_transactions(wanted, driver.now_ms)]

    assert names(Filter()) == ["idle", "open"]
    states, unknown = read_states(["Ongoing", "Nonsense"])
    assert unknown == ["Nonsense"]
    assert names(Filter(states=states)) == ["open"]
    assert names(Filter(producer_ids=frozenset({1001}))) == ["idle"]
    assert names(Filter(duration_ms=99)) == ["open"]
    assert names(Filter(duration_ms=100)) == []
    assert names(Filter(matches=lambda name: name == "idle")) == ["idle"]
