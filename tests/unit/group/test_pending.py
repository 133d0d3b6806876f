"""Laws of offsets that are committed in transactions."""

from ottla.base.errors import ErrorCode
from ottla.group.model.turn import Call
from ottla.wire.messages.group_offsets import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from tests.unit.group.consumer_driver import GROUP, Cluster, Member, World
from tests.unit.group.driver import Driver

UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT


def commit(
    driver: Driver | Cluster,
    producer_id: int,
    offset: int,
    *,
    member_id: str = "",
    generation: int = -1,
    topic: str = "t",
    metadata: str = "",
    group_id: str = "g",
) -> ErrorCode:
    """TxnOffsetCommit of one partition, appended and applied as pending."""
    partition = TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=metadata
    )
    request = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id=group_id,
        producer_id=producer_id,
        generation_id=generation,
        member_id=member_id,
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )
    decision = driver.coordinator.offsets.commit_in_transaction(
        Call("", 3), request, lambda topic, _index: topic == "t", driver.at
    )
    for record in decision.records:
        driver.coordinator.registry.apply_pending(producer_id, record)
    (reply,) = decision.replies
    assert isinstance(reply.message, TxnOffsetCommitResponse)
    return ErrorCode(reply.message.topics[0].partitions[0].error_code)


def stable(driver: Driver) -> tuple[int, ErrorCode]:
    """What OffsetFetch with require_stable tells of t-0."""
    decision = driver.coordinator.offsets.fetch(
        Call("", 9), "g", [("t", [0])], lambda topics: topics, is_stable=True
    )
    (topic,) = decision.replies[0].message
    return topic.partitions[0].offset, topic.partitions[0].error_code


def test_offsets_of_a_transaction_count_once_it_commits() -> None:
    """Until then they are not seen, and who wants a stable answer has to wait (KIP-447)."""
    driver = Driver()
    driver.commit(3)
    assert commit(driver, 7, 10) is ErrorCode.NONE
    assert driver.committed() == 3
    assert stable(driver) == (-1, UNSTABLE)
    driver.coordinator.registry.end_transaction(7, is_commit=True)
    assert (driver.committed(), stable(driver)) == (10, (10, ErrorCode.NONE))


def test_offsets_of_an_aborted_transaction_never_counted() -> None:
    """What was before stays; a group of them alone has none."""
    driver = Driver()
    commit(driver, 7, 10)
    driver.coordinator.registry.end_transaction(7, is_commit=False)
    assert (driver.committed(), stable(driver)) == (-1, (-1, ErrorCode.NONE))
    driver.coordinator.registry.end_transaction(7, is_commit=True)
    assert driver.committed() == -1


def test_a_transaction_that_only_commits_brings_its_group_into_being() -> None:
    """As a plain commit does."""
    driver = Driver()
    commit(driver, 7, 10)
    driver.coordinator.registry.end_transaction(7, is_commit=True)
    assert driver.committed() == 10


def test_what_was_written_later_stays() -> None:
    """The order is that of the log, and not that of the outcomes."""
    driver = Driver()
    commit(driver, 7, 10)
    driver.commit(20)
    assert stable(driver) == (-1, UNSTABLE)
    driver.coordinator.registry.end_transaction(7, is_commit=True)
    assert stable(driver) == (20, ErrorCode.NONE)
    commit(driver, 7, 30)
    commit(driver, 8, 40)
    driver.coordinator.registry.end_transaction(8, is_commit=True)
    driver.coordinator.registry.end_transaction(7, is_commit=True)
    assert driver.committed() == 40


def test_an_aborted_later_transaction_overtakes_nothing() -> None:
    """Only what counts does."""
    driver = Driver()
    commit(driver, 7, 30)
    commit(driver, 8, 40)
    driver.coordinator.registry.end_transaction(8, is_commit=False)
    driver.coordinator.registry.end_transaction(7, is_commit=True)
    assert driver.committed() == 30


def test_a_zombie_cannot_commit() -> None:
    """Members are checked as in OffsetCommit; a producer that names none is not (before v3)."""
    driver = Driver()
    ids = driver.stable_group("a")
    assert commit(driver, 7, 1, member_id=ids["a"], generation=1) is ErrorCode.NONE
    code = commit(driver, 7, 1, member_id=ids["a"], generation=0)
    assert code is ErrorCode.ILLEGAL_GENERATION
    assert commit(driver, 7, 1, member_id="?", generation=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(driver, 7, 1) is ErrorCode.NONE
    assert commit(Driver(), 7, 1, generation=4) is ErrorCode.ILLEGAL_GENERATION


def test_bad_partitions_are_told_one_by_one() -> None:
    """A topic that does not exist, metadata that are too long."""
    driver = Driver(offset_metadata_max=3)
    assert commit(driver, 7, 1, topic="u") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(driver, 7, 1, metadata="long") is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert not driver.coordinator.registry.pending


def delete(driver: Driver) -> object:
    driver.carry_out(driver.coordinator.delete(Call("deleted", 2), "g", driver.at))
    return driver.answers.pop("deleted")


def test_a_group_of_pending_offsets_is_a_group() -> None:
    """It can be deleted with them, as in Kafka; its id is that of no share group."""
    driver = Driver()
    commit(driver, 7, 10)
    driver.expire()
    assert driver.coordinator.share._is_other("g")
    assert delete(driver) is ErrorCode.NONE
    driver.coordinator.registry.end_transaction(7, is_commit=True)
    assert driver.committed() == -1
    assert delete(driver) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_whose_only_transaction_was_aborted_goes_when_offsets_expire() -> None:
    """Until then its id is taken, as in Kafka."""
    driver = Driver()
    commit(driver, 7, 10)
    driver.coordinator.registry.end_transaction(7, is_commit=False)
    assert driver.coordinator.share._is_other("g")
    driver.expire()
    assert not driver.coordinator.share._is_other("g")


def test_a_consumer_group_takes_only_minus_one_for_no_epoch() -> None:
    """A producer that names no member names no epoch either; a classic group takes any below 0."""
    driver = Driver()
    driver.stable_group("a")
    assert commit(driver, 7, 1, generation=-2) is ErrorCode.NONE
    world = World(t=1)
    consumers = Cluster(world)
    Member(consumers, "m", ["t"]).beat()
    for generation, code in (
        (-1, ErrorCode.NONE),
        (-2, ErrorCode.UNKNOWN_MEMBER_ID),
        (-3, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        assert commit(consumers, 7, 1, generation=generation, group_id=GROUP) is code


def test_a_deleted_group_gets_nothing_back() -> None:
    """What its transactions had pending is gone with it."""
    driver = Driver()
    driver.commit(3)
    commit(driver, 7, 10)
    driver.carry_out(driver.coordinator.delete(Call("deleted", 2), "g", driver.at))
    assert driver.answers["deleted"] is ErrorCode.NONE
    driver.coordinator.registry.end_transaction(7, is_commit=True)
    assert driver.committed() == -1


def test_what_waits_for_an_outcome_does_not_expire() -> None:
    """Nor does its group."""
    driver = Driver(offsets_retention_ms=1_000)
    driver.commit(3)
    commit(driver, 7, 10)
    driver.now_ms += 1_000
    driver.expire()
    assert driver.committed() == 3
    driver.coordinator.registry.end_transaction(7, is_commit=False)
    driver.expire()
    assert driver.committed() == -1
