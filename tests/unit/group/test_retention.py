"""Laws of offset expiry (KIP-211)."""

from ottla.group.records.stored import GroupRecord, OffsetRecord, decode
from tests.unit.group.driver import Driver

DAY = 24 * 60 * 60 * 1_000
WEEK = 7 * DAY


def test_retention_counts_from_when_the_group_became_empty() -> None:
    """However old the commit is."""
    driver = Driver()
    ids = driver.stable_group("a")
    driver.commit(1, member_id=ids["a"], generation=1)
    driver.now_ms += 30 * DAY
    driver.leave((ids["a"], None))
    driver.now_ms += WEEK - 1
    driver.expire()
    assert driver.committed() == 1
    driver.restart()
    driver.now_ms += 1
    driver.expire()
    assert driver.committed() == -1


def test_expiry_writes_tombstones_for_offsets_then_for_the_group() -> None:
    """So that a replay forgets them too."""
    driver = Driver()
    ids = driver.stable_group("a")
    driver.commit(1, member_id=ids["a"], generation=1)
    driver.leave((ids["a"], None))
    driver.now_ms += WEEK
    del driver.log[:]
    driver.expire()
    records = [decode(*entry) for entry in driver.log]
    assert records == [OffsetRecord("g", ("t", 0), None), GroupRecord("g", None)]
    assert driver.coordinator.registry.groups == {}
    driver.restart()
    assert driver.durable() == {}


def test_offsets_of_a_simple_group_expire_each_from_its_commit() -> None:
    """Such a group never becomes empty: it always is."""
    driver = Driver()
    driver.commit(1, partition=0)
    driver.now_ms += DAY
    driver.commit(2, partition=1)
    driver.now_ms += WEEK - DAY
    driver.expire()
    assert (driver.committed("t", 0), driver.committed("t", 1)) == (-1, 2)


def test_offsets_of_topics_that_members_read_stay() -> None:
    """While consumers are there, only what none of them reads expires, from its commit."""
    driver = Driver()
    ids = driver.stable_group("a", topics=("t",))
    driver.commit(1, member_id=ids["a"], generation=1, topic="t")
    driver.commit(2, member_id=ids["a"], generation=1, topic="old")
    driver.now_ms += WEEK
    driver.expire()
    assert (driver.committed("t"), driver.committed("old")) == (1, -1)
    assert "g" in driver.coordinator.registry.groups


def test_nothing_expires_while_a_group_rebalances_or_cannot_be_understood() -> None:
    """Other protocols than consumers' do not say what they read."""
    driver = Driver()
    driver.join("a", version=0, protocol_type="connect", protocols=(("p", b"?"),))
    driver.sync("s", "c-a", 1, {})
    driver.commit(1, member_id="c-a", generation=1)
    driver.now_ms += WEEK
    driver.expire()
    assert driver.committed() == 1


def test_commit_with_a_retention_of_its_own_keeps_to_it() -> None:
    """Clients before OffsetCommit v5 could say how long."""
    driver = Driver()
    driver.commit(1, retention_ms=1_000, version=4)
    driver.restart()
    driver.now_ms += 999
    driver.expire()
    assert driver.committed() == 1
    driver.now_ms += 1
    driver.expire()
    assert driver.committed() == -1


def test_group_nobody_came_to_is_forgotten() -> None:
    """An id that was handed out and never used leaves nothing behind, not even a tombstone."""
    driver = Driver()
    driver.join("1")
    driver.advance(10_000)
    driver.expire()
    assert driver.coordinator.registry.groups == {}
    assert driver.log == []


def test_empty_group_without_offsets_is_forgotten() -> None:
    """There is nothing left to know about it but its generation."""
    driver = Driver()
    ids = driver.stable_group("a")
    driver.leave((ids["a"], None))
    driver.expire()
    assert driver.coordinator.registry.groups == {}
