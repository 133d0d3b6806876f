"""Laws of OffsetCommit and OffsetFetch."""

from ottla.base.errors import ErrorCode
from ottla.group.offsets.stored_offsets import FetchedOffset, FetchedTopic
from tests.unit.group.driver import Driver


def test_group_resumes_where_it_committed() -> None:
    """One integer per partition is all a consumer must remember (P11)."""
    driver = Driver()
    ids = driver.stable_group("a")
    assert driver.commit(42, member_id=ids["a"], generation=1, metadata="note") == ErrorCode.NONE
    assert driver.fetch([("t", [0, 1]), ("u", [0])]) == [
        FetchedTopic(
            "t",
            [
                FetchedOffset(0, 42, 4, "note", ErrorCode.NONE),
                FetchedOffset(1, -1, -1, "", ErrorCode.NONE),
            ],
        ),
        FetchedTopic("u", [FetchedOffset(0, -1, -1, "", ErrorCode.NONE)]),
    ]


def test_offsets_survive_a_restart() -> None:
    """They are in the log, the last one of each partition counts."""
    driver = Driver()
    ids = driver.stable_group("a")
    driver.commit(1, member_id=ids["a"], generation=1)
    driver.commit(2, member_id=ids["a"], generation=1)
    driver.commit(7, member_id=ids["a"], generation=1, partition=1)
    before = driver.durable()
    driver.restart()
    assert driver.durable() == before
    assert (driver.committed("t", 0), driver.committed("t", 1)) == (2, 7)


def test_zombie_cannot_move_offsets_back() -> None:
    """A member of an old generation, or one that is out, is refused (S28)."""
    driver = Driver()
    ids = driver.stable_group("a", "b")
    driver.commit(100, member_id=ids["a"], generation=2)
    driver.leave((ids["b"], None))
    driver.join("again", ids["a"])
    driver.sync("s", ids["a"], 3, {})
    assert driver.commit(5, member_id=ids["a"], generation=2) == ErrorCode.ILLEGAL_GENERATION
    assert driver.commit(5, member_id=ids["b"], generation=2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.commit(5, member_id=ids["b"], generation=3) == ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.commit(5) == ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.committed() == 100


def test_member_may_commit_during_the_join_phase_but_not_before_its_share() -> None:
    """It hands over what it has read; with a new generation it has read nothing yet."""
    driver = Driver()
    ids = driver.stable_group("a")
    driver.join("new", version=3)
    assert driver.commit(9, member_id=ids["a"], generation=1) == ErrorCode.NONE
    driver.join("again", ids["a"])
    assert driver.commit(9, member_id=ids["a"], generation=2) == ErrorCode.REBALANCE_IN_PROGRESS


def test_commit_renews_the_session() -> None:
    """Who commits is alive."""
    driver = Driver()
    ids = driver.stable_group("a")
    for offset in range(5):
        driver.advance(9_999)
        assert driver.commit(offset, member_id=ids["a"], generation=1) == ErrorCode.NONE


def test_commit_without_membership_makes_a_simple_group() -> None:
    """Generation -1 stores offsets for a program that assigns its partitions itself."""
    driver = Driver()
    assert driver.commit(3) == ErrorCode.NONE
    assert driver.group().protocol_type is None
    driver.restart()
    assert driver.committed() == 3
    assert driver.commit(4) == ErrorCode.NONE


def test_commit_of_a_generation_in_an_unknown_group_is_refused() -> None:
    """It says so by the name that the version knows (KIP-848)."""
    driver = Driver()
    assert driver.commit(3, member_id="a", generation=1, version=8) == ErrorCode.ILLEGAL_GENERATION
    assert driver.commit(3, member_id="a", generation=1, version=9) == ErrorCode.GROUP_ID_NOT_FOUND
    assert driver.coordinator.registry.groups == {}


def test_metadata_that_is_too_long_is_refused() -> None:
    """`offset.metadata.max.bytes` bounds what accompanies an offset; none is fine."""
    driver = Driver(offset_metadata_max=4)
    assert driver.commit(1, metadata="12345") == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert driver.committed() == -1
    assert driver.commit(1, metadata="1234") == ErrorCode.NONE
    assert driver.commit(1, metadata=None) == ErrorCode.NONE


def test_partition_that_does_not_exist_is_refused() -> None:
    """The broker's answer about the partition is passed on, and nothing is written."""
    driver = Driver()
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert driver.commit(1, check=code) == code
    assert driver.log == []


def test_all_offsets_are_told_in_order() -> None:
    """No topics asked for means every topic."""
    driver = Driver()
    for topic, partition in [("u", 1), ("t", 3), ("u", 0)]:
        driver.commit(partition, topic=topic, partition=partition)
    told = driver.fetch(None)
    assert [(each.topic, [p.partition for p in each.partitions]) for each in told] == [
        ("t", [3]),
        ("u", [0, 1]),
    ]
    assert driver.fetch(None, "other") == []
