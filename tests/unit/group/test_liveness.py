"""Laws of heartbeats and sessions."""

from ottla.base.errors import ErrorCode
from ottla.group.model.group import GroupState
from tests.unit.group.driver import TIMESTAMP, Driver


def test_heartbeat_keeps_a_member_in() -> None:
    """Each one starts the session anew."""
    driver = Driver()
    ids = driver.stable_group("a")
    for _ in range(5):
        driver.advance(9_999)
        assert driver.heartbeat(ids["a"], 1) == ErrorCode.NONE


def test_silent_member_is_out_when_its_session_ends() -> None:
    """The others share out its partitions, and it is told that it is unknown."""
    driver = Driver()
    ids = driver.stable_group("a", "b")
    driver.advance(5_000)
    driver.heartbeat(ids["a"], 2)
    driver.advance(4_999)
    assert set(driver.group().members) == {ids["a"], ids["b"]}
    driver.advance(1)
    assert set(driver.group().members) == {ids["a"]}
    assert driver.heartbeat(ids["b"], 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.heartbeat(ids["a"], 2) == ErrorCode.REBALANCE_IN_PROGRESS


def test_group_whose_last_member_falls_silent_is_empty() -> None:
    """In a new generation, and the log says since when."""
    driver = Driver()
    driver.stable_group("a")
    driver.advance(10_000)
    group = driver.group()
    assert (group.state, group.generation, group.members) == (GroupState.EMPTY, 2, {})
    assert group.stored is not None
    assert group.stored.state_timestamp_ms == TIMESTAMP + 10_000
    assert (group.stored.protocol_type, group.stored.protocol_name) == ("consumer", None)


def test_member_that_waits_for_us_is_not_silent() -> None:
    """It cannot send heartbeats while its join is parked."""
    driver = Driver()
    ids = driver.stable_group("a", "b")
    driver.join("wait", ids["a"])
    for _ in range(4):
        driver.advance(9_000)
        driver.heartbeat(ids["b"], 2)
    assert set(driver.group().members) == {ids["a"], ids["b"]}


def test_new_member_does_not_wait_for_ever() -> None:
    """It has no session yet; after five minutes it is told to try again."""
    driver = Driver()
    ids = driver.stable_group("a")
    driver.join("slow", ids["a"], protocols=(("range", b"2"),), rebalance_ms=1_000_000)
    driver.sync("s", ids["a"], 2, {})
    driver.join("new", version=1, session_ms=6_000, rebalance_ms=1_000_000)
    for _ in range(60):
        driver.heartbeat(ids["a"], 2)
        driver.advance(5_000)
    assert driver.answers["new"].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert set(driver.group().members) == {ids["a"]}


def test_heartbeat_of_another_generation_is_refused() -> None:
    """A zombie learns that the group went on without it."""
    driver = Driver()
    ids = driver.stable_group("a")
    assert driver.heartbeat(ids["a"], 0) == ErrorCode.ILLEGAL_GENERATION
    assert driver.heartbeat("stranger", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert Driver().heartbeat("stranger", 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_sessions_start_anew_when_groups_are_loaded() -> None:
    """A restart of the broker is no fault of the members; those that are gone go in time."""
    driver = Driver()
    ids = driver.stable_group("a", "b")
    driver.advance(9_000)
    driver.restart()
    assert driver.group().state is GroupState.STABLE
    driver.advance(9_000)
    assert driver.heartbeat(ids["a"], 2) == ErrorCode.NONE
    driver.advance(1_000)
    assert set(driver.group().members) == {ids["a"]}


def test_loaded_group_that_is_too_large_is_rebalanced() -> None:
    """`group.max.size` may have been lowered meanwhile."""
    driver = Driver()
    ids = driver.stable_group("a", "b")
    driver.settings = Driver(max_size=1).settings
    driver.restart()
    assert driver.heartbeat(ids["a"], 2) == ErrorCode.REBALANCE_IN_PROGRESS
