"""Laws of static membership (KIP-345, KIP-814)."""

from ottla.base.errors import ErrorCode
from ottla.group.model.group import GroupState
from tests.unit.group.driver import Driver


def _stable(driver: Driver) -> tuple[str, str]:
    """A stable group of generation 1 with the static members x (leader) and y."""
    driver.join("x", instance="x", version=9)
    driver.join("y", instance="y", version=9)
    if driver.group().generation == 1:
        driver.join("x2", "x-x", instance="x")
    generation = driver.group().generation
    driver.sync("sy", "y-y", generation, instance="y")
    driver.sync("sx", "x-x", generation, {"x-x": b"X", "y-y": b"Y"}, instance="x")
    assert driver.group().state is GroupState.STABLE
    driver.answers.clear()
    return "x-x", "y-y"


def test_static_member_joins_in_one_step() -> None:
    """It has a name of its own, so nothing is left behind by a lost answer."""
    driver = Driver()
    answer = driver.join("1", instance="x")
    assert answer is not None
    assert (answer.error_code, answer.member_id) == (0, "x-1")


def test_restarted_static_follower_keeps_its_share_without_a_rebalance() -> None:
    """The new process gets the old one's place, and its assignment by a sync."""
    driver = Driver()
    _stable(driver)
    answer = driver.join("new", instance="y")
    assert answer is not None
    assert (answer.error_code, answer.generation_id, answer.member_id) == (0, 2, "y-new")
    assert driver.group().state is GroupState.STABLE
    assert driver.sync("s", "y-new", 2, instance="y").assignment == b"Y"


def test_restarted_static_member_survives_a_restart_of_the_coordinator() -> None:
    """The new id is in the log before the member knows it."""
    driver = Driver()
    _stable(driver)
    driver.join("new", instance="y")
    driver.restart()
    assert driver.heartbeat("y-new", 2, "y") == ErrorCode.NONE
    assert driver.heartbeat("y-y", 2, "y") == ErrorCode.FENCED_INSTANCE_ID


def test_old_process_of_a_static_member_is_fenced() -> None:
    """Two processes with one instance id: the later one wins, everywhere."""
    driver = Driver()
    _, old = _stable(driver)
    driver.join("new", instance="y")
    assert driver.heartbeat(old, 2, "y") == ErrorCode.FENCED_INSTANCE_ID
    assert driver.sync("s", old, 2, instance="y").error_code == ErrorCode.FENCED_INSTANCE_ID
    assert (
        driver.commit(1, member_id=old, generation=2, instance="y") == ErrorCode.FENCED_INSTANCE_ID
    )
    assert driver.leave((old, "y")) == [ErrorCode.FENCED_INSTANCE_ID]
    answer = driver.join("j", old, instance="y")
    assert answer is not None
    assert answer.error_code == ErrorCode.FENCED_INSTANCE_ID


def test_process_that_waits_in_a_join_is_fenced_at_once() -> None:
    """It must not come back with an id that is no longer its own."""
    driver = Driver()
    _, y = _stable(driver)
    driver.join("other", version=3)
    driver.join("waits", y, instance="y")
    driver.join("new", instance="y")
    answer = driver.answers["waits"]
    assert (answer.error_code, answer.member_id) == (ErrorCode.FENCED_INSTANCE_ID, "y-y")


def test_restarted_static_leader_is_told_to_skip_the_assignment() -> None:
    """From version 9 on it leads again, watches its topics, and shares out nothing (KIP-814)."""
    driver = Driver()
    _stable(driver)
    answer = driver.join("new", instance="x", version=9)
    assert answer is not None
    assert (answer.leader, answer.skip_assignment) == ("x-new", True)
    assert [each.member_id for each in answer.members] == ["x-new", "y-y"]


def test_restarted_static_leader_of_an_old_client_is_told_the_old_leader() -> None:
    """Before version 9 it must not take itself for the leader, or it would share out anew."""
    driver = Driver()
    _stable(driver)
    answer = driver.join("new", instance="x", version=8)
    assert answer is not None
    assert (answer.leader, answer.skip_assignment, answer.members) == ("x-x", False, [])


def test_restarted_static_member_with_another_assignor_starts_a_rebalance() -> None:
    """If the group would choose another protocol now, its assignment is of no use."""
    driver = Driver()
    driver.join("1", instance="x", protocols=(("range", b""), ("sticky", b"")))
    driver.sync("s", "x-1", 1, {"x-1": b""}, instance="x")
    assert driver.join("2", instance="x", protocols=(("sticky", b""),)) is not None
    assert driver.answers["2"].protocol_name == "sticky"
    assert driver.answers["2"].generation_id == 2


def test_static_member_that_restarts_while_shares_are_made_starts_a_rebalance() -> None:
    """The leader may be sharing out to the old id."""
    driver = Driver()
    _stable(driver)
    driver.join("x3", "x-x", instance="x")
    driver.join("y3", "y-y", instance="y", protocols=(("range", b"changed"),))
    assert driver.group().state is GroupState.COMPLETING_REBALANCE
    assert driver.join("new", instance="y") is None
    assert driver.group().state is GroupState.PREPARING_REBALANCE


def test_static_member_that_misses_a_rebalance_stays_until_its_session_ends() -> None:
    """A restart takes a while; its partitions are not given away meanwhile."""
    driver = Driver()
    driver.join("x", instance="x", rebalance_ms=20_000, session_ms=60_000)
    driver.sync("s", "x-x", 1, {"x-x": b""}, instance="x")
    driver.join("n", version=1, rebalance_ms=20_000, session_ms=60_000)
    driver.advance(20_000)
    assert driver.answers["n"].generation_id == 2
    assert driver.answers["n"].leader == "c-n"
    assert [each.member_id for each in driver.answers["n"].members] == ["x-x", "c-n"]


def test_administrator_removes_a_static_member_by_its_instance_id() -> None:
    """The member id need not be known."""
    driver = Driver()
    _stable(driver)
    assert driver.leave(("", "y"), ("", "z")) == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert list(driver.group().static_members) == ["x"]


def test_static_member_that_restarts_in_a_rebalance_survives_a_restart_of_the_coordinator() -> None:
    """It joined, and the coordinator is gone before the sync: the new one must not fence it."""
    driver = Driver()
    _stable(driver)
    driver.join("x3", "x-x", instance="x")
    driver.join("new", instance="y", protocols=(("range", b"changed"),))
    joined = driver.answers["new"]
    assert (joined.error_code, joined.generation_id, joined.member_id) == (0, 3, "y-new")
    driver.restart()
    # The group is what the log says, of generation 2, under the new id.
    code = driver.sync("s", "y-new", 3, instance="y").error_code
    assert code == ErrorCode.ILLEGAL_GENERATION
    assert driver.heartbeat("y-y", 2, "y") == ErrorCode.FENCED_INSTANCE_ID
    assert driver.heartbeat("x-x", 2, "x") == ErrorCode.NONE
    again = driver.join("again", "y-new", instance="y", protocols=(("range", b"changed"),))
    assert again is None or again.error_code == ErrorCode.NONE


def test_static_member_that_was_dropped_and_joined_anew_survives_it_too() -> None:
    """It left while shares were made and got another id; the log had the one before."""
    driver = Driver()
    _stable(driver)
    driver.join("x3", "x-x", instance="x")
    driver.join("y3", "y-y", instance="y", protocols=(("range", b"changed"),))
    driver.leave(("y-y", "y"))
    driver.join("new", instance="y")
    driver.join("x4", "x-x", instance="x")
    assert driver.answers["new"].error_code == 0
    driver.restart()
    assert driver.heartbeat("y-new", 2, "y") == ErrorCode.NONE


def test_members_of_a_rebalance_stay_when_a_static_one_restarts_in_it() -> None:
    """What is written for a coming coordinator changes nothing of the present one."""
    driver = Driver()
    _stable(driver)
    driver.join("x3", "x-x", instance="x")
    driver.join("n", version=1)
    driver.join("new", instance="y")
    assert [driver.answers[who].generation_id for who in ("x3", "n", "new")] == [3, 3, 3]
    assert sorted(driver.group().members) == ["c-n", "x-x", "y-new"]
    assert driver.group().state is GroupState.COMPLETING_REBALANCE
    driver.join("newer", instance="y")
    assert driver.group().state is GroupState.PREPARING_REBALANCE
    assert driver.group().generation == 3
    assert sorted(driver.group().members) == ["c-n", "x-x", "y-newer"]
