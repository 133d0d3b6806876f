"""Laws of JoinGroup."""

from ottla.base.errors import ErrorCode
from ottla.group.model.group import GroupState
from tests.unit.group.driver import Driver


def test_new_dynamic_member_is_told_its_id_first() -> None:
    """From version 4 on a caller without an id gets one and must come again with it (KIP-394)."""
    driver = Driver()
    told = driver.join("1", version=4)
    assert told is not None
    assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert told.member_id == "c-1"
    assert driver.group().members == {}
    answer = driver.join("2", "c-1", version=4)
    assert answer is not None
    assert (answer.error_code, answer.generation_id, answer.leader) == (0, 1, "c-1")


def test_old_client_joins_in_one_step() -> None:
    """Before version 4 the id comes with the first answer."""
    driver = Driver()
    answer = driver.join("1", version=3)
    assert answer is not None
    assert (answer.error_code, answer.member_id, answer.generation_id) == (0, "c-1", 1)


def test_id_from_nowhere_is_refused() -> None:
    """Neither a group nor a member comes into being by an id that was never handed out."""
    driver = Driver()
    answer = driver.join("1", "stranger")
    assert answer is not None
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "stranger")
    assert driver.coordinator.registry.groups == {}
    driver.stable_group("a")
    answer = driver.join("2", "stranger")
    assert answer is not None
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_session_timeout_out_of_bounds_is_refused() -> None:
    """The broker's settings bound it on both sides, the bounds included."""
    driver = Driver(min_session_timeout_ms=1_000, max_session_timeout_ms=2_000)
    codes = []
    for ticket, timeout_ms in [("1", 999), ("2", 1_000), ("3", 2_000), ("4", 2_001)]:
        answer = driver.join(ticket, session_ms=timeout_ms)
        assert answer is not None
        codes.append(answer.error_code)
    assert codes == [
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.INVALID_SESSION_TIMEOUT,
    ]


def test_first_rebalance_waits_for_more_members() -> None:
    """An empty group waits for its delay, and again while members arrive (KIP-134)."""
    driver = Driver(initial_rebalance_delay_ms=3_000)
    driver.join("1", version=0)
    driver.advance(2_999)
    assert driver.answers == {}
    driver.join("2", version=0)
    driver.advance(2_999)
    assert driver.answers == {}
    driver.advance(2)
    assert [driver.answers[ticket].generation_id for ticket in ("1", "2")] == [1, 1]


def test_first_rebalance_waits_no_longer_than_the_rebalance_timeout() -> None:
    """Members that keep arriving cannot put it off for ever."""
    driver = Driver(initial_rebalance_delay_ms=3_000)
    driver.join("0", version=1, rebalance_ms=7_000)
    for second in range(1, 8):
        driver.advance(1_000)
        if second < 7:
            assert driver.answers == {}
            driver.join(str(second), version=1, rebalance_ms=7_000)
    assert {answer.generation_id for answer in driver.answers.values()} == {1}
    assert len(driver.answers) == 7


def test_only_the_leader_learns_the_members() -> None:
    """The leader shares out, so it alone gets everybody's metadata."""
    driver = Driver(initial_rebalance_delay_ms=100)
    driver.join("1", version=0, protocols=(("range", b"one"),))
    driver.join("2", version=0, protocols=(("range", b"two"),))
    driver.advance(200)
    leader, follower = driver.answers["1"], driver.answers["2"]
    assert [(each.member_id, each.metadata) for each in leader.members] == [
        ("c-1", b"one"),
        ("c-2", b"two"),
    ]
    assert follower.members == []
    assert follower.leader == leader.leader == "c-1"
    assert (leader.protocol_type, leader.protocol_name) == ("consumer", "range")


def test_protocol_with_most_votes_wins() -> None:
    """Each member votes for the first it lists among those all can work with."""
    driver = Driver(initial_rebalance_delay_ms=100)
    driver.join("1", version=0, protocols=(("range", b""), ("sticky", b"")))
    driver.join("2", version=0, protocols=(("new", b""), ("sticky", b""), ("range", b"")))
    driver.join("3", version=0, protocols=(("sticky", b""), ("range", b"")))
    driver.advance(200)
    assert driver.answers["1"].protocol_name == "sticky"


def test_member_without_a_common_protocol_is_refused() -> None:
    """A group has one protocol type, and one assignor all its members know."""
    driver = Driver()
    driver.stable_group("a")
    for ticket, arguments in [
        ("1", {"protocols": (("other", b""),)}),
        ("2", {"protocol_type": "connect"}),
        ("3", {"protocols": ()}),
    ]:
        answer = driver.join(ticket, **arguments)  # type: ignore[arg-type]  # Keywords in a table.
        assert answer is not None
        assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_group_that_is_full_takes_nobody_in() -> None:
    """`group.max.size` holds for members of a group that stands."""
    driver = Driver(max_size=2)
    driver.stable_group("a", "b")
    answer = driver.join("1", version=3)
    assert answer is not None
    assert (answer.error_code, answer.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert len(driver.group().members) == 2


def test_new_member_makes_the_others_join_again() -> None:
    """The join phase lasts until all old members have come, and makes a new generation."""
    driver = Driver()
    ids = driver.stable_group("a")
    assert driver.join("new", version=3) is None
    assert driver.group().state is GroupState.PREPARING_REBALANCE
    assert driver.heartbeat(ids["a"], 1) == ErrorCode.REBALANCE_IN_PROGRESS
    again = driver.join("again", ids["a"])
    assert again is not None
    assert (again.generation_id, again.leader) == (2, ids["a"])
    assert driver.answers["new"].generation_id == 2


def test_member_that_does_not_join_again_in_time_is_out() -> None:
    """The rebalance timeout ends the join phase with whoever is there, under a leader of theirs."""
    driver = Driver()
    ids = driver.stable_group("a")
    driver.join("new", version=1, rebalance_ms=60_000)
    for _ in range(12):
        driver.advance(5_000)
        driver.heartbeat(ids["a"], 1)
    assert driver.answers["new"].generation_id == 2
    assert driver.answers["new"].leader == "c-new"
    assert list(driver.group().members) == ["c-new"]


def test_follower_that_joins_unchanged_is_told_the_present_generation() -> None:
    """A retry whose answer was lost must not shake the group; the leader's does, on purpose."""
    driver = Driver()
    ids = driver.stable_group("a", "b")
    protocols = (("range", b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"),)
    answer = driver.join("follower", ids["b"], protocols=protocols)
    assert answer is not None
    assert (answer.generation_id, answer.members) == (2, [])
    assert driver.group().state is GroupState.STABLE
    assert driver.join("leader", ids["a"], protocols=protocols) is None
    assert driver.group().state is GroupState.PREPARING_REBALANCE


def test_member_that_changes_what_it_offers_starts_a_rebalance() -> None:
    """New metadata means a new assignment."""
    driver = Driver()
    ids = driver.stable_group("a", "b")
    assert driver.join("follower", ids["b"], protocols=(("range", b"new"),)) is None
    assert driver.group().state is GroupState.PREPARING_REBALANCE


def test_join_that_is_repeated_lets_the_older_one_go() -> None:
    """Nobody waits for ever on a request its client has given up."""
    driver = Driver()
    ids = driver.stable_group("a", "b")
    driver.join("first", ids["a"])
    assert driver.join("second", ids["a"]) is None
    assert driver.answers["first"].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    driver.join("b", ids["b"])
    assert driver.answers["second"].generation_id == 3


def test_handed_out_id_holds_the_join_phase_until_its_session_ends() -> None:
    """A member on its way is waited for, but no longer than its session timeout."""
    driver = Driver()
    ids = driver.stable_group("a")
    driver.join("pending", session_ms=6_000)
    driver.join("again", ids["a"])
    driver.advance(5_999)
    assert "again" not in driver.answers
    driver.advance(1)
    assert driver.answers["again"].generation_id == 2
    answer = driver.join("late", "c-pending")
    assert answer is not None
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_hands_out_so_many_ids_at_a_time() -> None:
    """The oldest is taken back: its client never came again, and joins anew if it does."""
    driver = Driver()
    for number in range(1_001):
        driver.join(str(number), version=4)
    answer = driver.join("first", "c-0", version=4)
    assert answer is not None
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert len(driver.group().pending_joins) == 1_000
    answer = driver.join("last", "c-1000", version=4)
    assert answer is None or answer.error_code == ErrorCode.NONE
    assert "c-1000" in driver.group().members
