"""Laws of SyncGroup."""

from ottla.base.errors import ErrorCode
from ottla.group.model.group import GroupState
from ottla.group.records.stored import GroupRecord, decode
from tests.unit.group.driver import Driver


def _completing(driver: Driver) -> None:
    """Members c-a (leader) and c-b of generation 1 that have joined and not synced."""
    driver.join("a", version=0)
    driver.join("b", version=0)
    driver.advance(200)
    assert driver.group().state is GroupState.COMPLETING_REBALANCE


def _driver() -> Driver:
    return Driver(initial_rebalance_delay_ms=100)


def test_followers_wait_for_the_leader() -> None:
    """A share is told when the leader has brought it (P11)."""
    driver = _driver()
    _completing(driver)
    assert driver.sync("sb", "c-b", 1) is None
    told = driver.sync("sa", "c-a", 1, {"c-a": b"0,1", "c-b": b"2"})
    assert (told.assignment, told.protocol_type, told.protocol_name) == (
        b"0,1",
        "consumer",
        "range",
    )
    assert driver.answers["sb"].assignment == b"2"
    assert driver.group().state is GroupState.STABLE
    assert driver.sync("late", "c-b", 1).assignment == b"2"


def test_assignment_is_one_record() -> None:
    """What the group agreed on is written as a whole, or not at all."""
    driver = _driver()
    _completing(driver)
    assert driver.log == []
    driver.sync("sa", "c-a", 1, {"c-a": b"A", "c-b": b"B"})
    (entry,) = driver.log
    record = decode(*entry)
    assert isinstance(record, GroupRecord)
    assert record.group is not None
    assert (record.group.generation, record.group.protocol_name, record.group.leader) == (
        1,
        "range",
        "c-a",
    )
    assert [(each.member_id, each.assignment) for each in record.group.members] == [
        ("c-a", b"A"),
        ("c-b", b"B"),
    ]


def test_forgotten_member_gets_an_empty_share_and_strangers_none() -> None:
    """The leader's list is held against the members."""
    driver = _driver()
    _completing(driver)
    driver.sync("sb", "c-b", 1)
    driver.sync("sa", "c-a", 1, {"c-a": b"A", "stranger": b"S"})
    assert driver.answers["sb"].assignment == b""
    assert [each.member_id for each in driver.group().members.values()] == ["c-a", "c-b"]


def test_sync_of_another_generation_is_refused() -> None:
    """Old and made-up generations alike; so are strangers and other protocols."""
    driver = _driver()
    _completing(driver)
    assert driver.sync("1", "c-b", 0).error_code == ErrorCode.ILLEGAL_GENERATION
    assert driver.sync("2", "c-b", 2).error_code == ErrorCode.ILLEGAL_GENERATION
    assert driver.sync("3", "c-x", 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    refused = driver.sync("4", "c-b", 1, protocol_name="sticky")
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_sync_during_a_join_phase_is_told_to_join() -> None:
    """And whoever waited for a share when the rebalance began is told the same."""
    driver = _driver()
    _completing(driver)
    driver.sync("sb", "c-b", 1)
    driver.join("new", version=0)
    assert driver.answers["sb"].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert driver.sync("sa", "c-a", 1, {}).error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_sync_in_an_unknown_group_is_refused() -> None:
    """There is nobody to be a member of."""
    assert _driver().sync("1", "c-a", 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_member_that_never_syncs_is_out() -> None:
    """All members must fetch their share within the rebalance timeout."""
    driver = _driver()
    driver.join("a", version=1, rebalance_ms=20_000, session_ms=60_000)
    driver.join("b", version=1, rebalance_ms=20_000, session_ms=60_000)
    driver.advance(200)
    driver.sync("sa", "c-a", 1, {"c-a": b"A", "c-b": b"B"})
    driver.advance(20_000)
    assert list(driver.group().members) == ["c-a"]
    assert driver.group().state is GroupState.PREPARING_REBALANCE
    assert driver.heartbeat("c-a", 1) == ErrorCode.REBALANCE_IN_PROGRESS
