"""Laws of DescribeGroups, ListGroups, DeleteGroups, OffsetDelete and deleted topics."""

from ottla.base.errors import ErrorCode
from ottla.group.model.turn import Call
from ottla.wire.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from ottla.wire.messages.groups import DescribedGroup, DescribedGroupMember, ListedGroup
from tests.unit.group.driver import Driver, subscription


def _describe(driver: Driver, group_id: str, version: int = 6) -> DescribedGroup:
    (reply,) = driver.coordinator.describe(Call("", version), group_id).replies
    assert isinstance(reply.message, DescribedGroup)
    return reply.message


def _delete(driver: Driver, group_id: str) -> ErrorCode:
    driver.carry_out(driver.coordinator.delete(Call("", 2), group_id, driver.at))
    code: ErrorCode = driver.answers.pop("")
    return code


def _delete_offsets(driver: Driver, *topics: str) -> OffsetDeleteResponse:
    request = OffsetDeleteRequest(
        group_id="g",
        topics=[
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=0)]
            )
            for topic in topics
        ],
    )
    decision = driver.coordinator.offsets.delete_offsets(
        Call("", 0), request, lambda topic, _index: topic != "nowhere", driver.at
    )
    driver.carry_out(decision)
    response: OffsetDeleteResponse = driver.answers.pop("")
    return response


def _codes(response: OffsetDeleteResponse) -> list[int]:
    return [topic.partitions[0].error_code for topic in response.topics]


def test_stable_group_is_described_with_what_its_members_read() -> None:
    """As Kafka shows it: client id, host, metadata and assignment."""
    driver = Driver()
    ids = driver.stable_group("a")
    assert _describe(driver, "g") == DescribedGroup(
        group_id="g",
        group_state="Stable",
        protocol_type="consumer",
        protocol_data="range",
        members=[
            DescribedGroupMember(
                member_id=ids["a"],
                client_id="c",
                client_host="/127.0.0.1",
                member_metadata=subscription("t"),
                member_assignment=b"a",
            )
        ],
    )


def test_group_in_a_rebalance_is_described_without_metadata() -> None:
    """Members are about to say anew what they offer; their last shares still show."""
    driver = Driver()
    driver.stable_group("a")
    driver.join("new", version=3)
    told = _describe(driver, "g")
    assert (told.group_state, told.protocol_data) == ("PreparingRebalance", "")
    assert [(each.member_metadata, each.member_assignment) for each in told.members] == [
        (b"", b"a"),
        (b"", b""),
    ]


def test_unknown_group_is_dead_or_an_error() -> None:
    """From version 6 on it is an error (KIP-1043)."""
    driver = Driver()
    assert _describe(driver, "x", 5) == DescribedGroup(group_id="x", group_state="Dead")
    told = _describe(driver, "x", 6)
    assert (told.error_code, told.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert told.error_message == "Group x not found."


def test_groups_are_listed_by_state_and_type() -> None:
    """Filters do not mind case; an empty one lets all pass."""
    driver = Driver()
    driver.stable_group("a")
    driver.commit(1, group_id="simple")
    stable = ListedGroup(
        group_id="g", protocol_type="consumer", group_state="Stable", group_type="classic"
    )
    simple = ListedGroup(
        group_id="simple", protocol_type="", group_state="Empty", group_type="classic"
    )
    list_groups = driver.coordinator.list_groups
    assert list_groups([], []) == [stable, simple]
    assert list_groups(["stable", "Dead"], []) == [stable]
    assert list_groups(["Empty"], ["CLASSIC"]) == [simple]
    assert list_groups([], ["consumer"]) == []


def test_only_an_empty_group_can_be_deleted() -> None:
    """With its offsets; and it stays deleted."""
    driver = Driver()
    ids = driver.stable_group("a")
    driver.commit(1, member_id=ids["a"], generation=1)
    assert _delete(driver, "g") == ErrorCode.NON_EMPTY_GROUP
    driver.leave((ids["a"], None))
    assert _delete(driver, "g") == ErrorCode.NONE
    assert driver.committed() == -1
    driver.restart()
    assert driver.durable() == {}
    assert _delete(driver, "g") == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_topics_that_members_read_cannot_be_deleted() -> None:
    """The others can, while the group goes on (KIP-496)."""
    driver = Driver()
    ids = driver.stable_group("a", topics=("t",))
    for topic in ("t", "old"):
        driver.commit(1, member_id=ids["a"], generation=1, topic=topic)
    response = _delete_offsets(driver, "t", "old", "nowhere", "never")
    assert response.error_code == ErrorCode.NONE
    assert _codes(response) == [
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
    ]
    assert (driver.committed("t"), driver.committed("old")) == (1, -1)


def test_offsets_of_an_empty_group_can_be_deleted() -> None:
    """Nobody reads anything then."""
    driver = Driver()
    driver.commit(1)
    assert _codes(_delete_offsets(driver, "t")) == [ErrorCode.NONE]
    assert driver.committed() == -1


def test_offsets_of_other_protocols_cannot_be_deleted_while_members_are_there() -> None:
    """What they read is their secret. An unknown group has no offsets."""
    driver = Driver()
    assert _delete_offsets(driver, "t").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    driver.join("a", version=0, protocol_type="connect", protocols=(("p", b"?"),))
    assert _delete_offsets(driver, "t").error_code == ErrorCode.NON_EMPTY_GROUP


def test_offsets_of_deleted_topics_are_forgotten() -> None:
    """A topic of the same name starts afresh."""
    driver = Driver()
    driver.commit(1, topic="gone")
    driver.commit(2, topic="kept")
    driver.carry_out(
        driver.coordinator.offsets.forget_topics(
            lambda name, _committed: name.topic == "gone", {"gone"}, driver.at
        )
    )
    driver.restart()
    assert (driver.committed("gone"), driver.committed("kept")) == (-1, 2)


def test_offsets_that_outlive_their_group_stay_readable() -> None:
    """Compaction may keep an offset and drop its tombstone's neighbours: nothing breaks."""
    driver = Driver()
    ids = driver.stable_group("a")
    driver.commit(1, member_id=ids["a"], generation=1)
    driver.leave((ids["a"], None))
    _delete(driver, "g")
    del driver.log[-2]  # The offset's tombstone.
    driver.restart()
    assert driver.committed() == 1
    assert _describe(driver, "g").group_state == "Empty"
