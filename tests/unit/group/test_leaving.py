"""Laws of LeaveGroup."""

from ottla.base.errors import ErrorCode
from ottla.group.model.group import GroupState
from tests.unit.group.driver import Driver


def test_member_that_leaves_makes_the_others_share_out_anew() -> None:
    """At once, without waiting for its session to end."""
    driver = Driver()
    ids = driver.stable_group("a", "b")
    assert driver.leave((ids["b"], None)) == [ErrorCode.NONE]
    assert driver.heartbeat(ids["a"], 2) == ErrorCode.REBALANCE_IN_PROGRESS
    assert driver.heartbeat(ids["b"], 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_last_member_that_leaves_leaves_the_group_empty() -> None:
    """Its generation goes on, so that nobody of the old one fits in later."""
    driver = Driver()
    ids = driver.stable_group("a")
    driver.leave((ids["a"], None))
    group = driver.group()
    assert (group.state, group.generation) == (GroupState.EMPTY, 2)
    driver.restart()
    group = driver.group()
    assert (group.state, group.generation) == (GroupState.EMPTY, 2)


def test_many_leave_at_once_in_one_rebalance() -> None:
    """Each gets an answer of its own."""
    driver = Driver()
    ids = driver.stable_group("a", "b", "c")
    generation = driver.group().generation
    codes = driver.leave((ids["a"], None), ("stranger", None), (ids["c"], None))
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE]
    assert driver.group().state is GroupState.PREPARING_REBALANCE
    driver.join("again", ids["b"])
    assert driver.answers["again"].generation_id == generation + 1


def test_old_client_leaves_alone() -> None:
    """Before version 3 the error is the answer's own."""
    driver = Driver()
    ids = driver.stable_group("a")
    assert driver.leave(("stranger", None), version=2) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert driver.leave((ids["a"], None), version=2) == [ErrorCode.NONE]


def test_leaving_an_unknown_group_is_an_error_per_member() -> None:
    """Nobody is a member of it."""
    assert Driver().leave(("a", None), ("b", None)) == [ErrorCode.UNKNOWN_MEMBER_ID] * 2


def test_handed_out_id_can_be_given_back() -> None:
    """The join phase waits for it no longer; a stable group rebalances, as in Kafka."""
    driver = Driver()
    ids = driver.stable_group("a")
    driver.join("p")
    driver.join("again", ids["a"])
    assert "again" not in driver.answers
    assert driver.leave(("c-p", None)) == [ErrorCode.NONE]
    assert driver.answers["again"].generation_id == 2
    driver.sync("s", ids["a"], 2, {})
    driver.join("q")
    driver.leave(("c-q", None))
    assert driver.group().state is GroupState.PREPARING_REBALANCE


def test_member_that_leaves_while_it_waits_is_answered() -> None:
    """Its parked join ends."""
    driver = Driver()
    ids = driver.stable_group("a", "b")
    driver.join("parked", ids["a"])
    driver.leave((ids["a"], None))
    assert driver.answers["parked"].error_code == ErrorCode.UNKNOWN_MEMBER_ID
