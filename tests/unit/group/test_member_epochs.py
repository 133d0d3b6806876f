"""Laws of epochs: the first one of a group, what raises it, and which one may commit.

Kafka 4.3.1 gave each answer; `integration/groups/test_codes_like_kafka.py` asks it again.
"""

import pytest

from ottla.base.errors import ErrorCode
from ottla.base.ids import NO_TOPIC_ID
from ottla.group.model.turn import Call
from ottla.group.offsets.commit import PartitionCheck
from ottla.group.values.topics import Share
from ottla.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.unit.group.consumer_driver import GROUP, Cluster, Member, World, settle


def exists(cluster: Cluster) -> PartitionCheck:
    """The check that a broker gives: whether there is such a partition."""

    def check(topic: OffsetCommitRequestTopic, index: int) -> ErrorCode:
        shape = cluster.world.find(topic.name)
        if shape is None or index >= shape.partitions:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE

    return check


def commit(member: Member, epoch: int, *partitions: int, version: int = 9) -> list[ErrorCode]:
    """What each partition of `t` is answered."""
    request = OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=epoch,
        member_id=member.member_id,
        topics=[
            OffsetCommitRequestTopic(
                name="t",
                topic_id=NO_TOPIC_ID,
                partitions=[
                    OffsetCommitRequestPartition(partition_index=each, committed_offset=1)
                    for each in partitions
                ],
            )
        ],
    )
    cluster = member.cluster
    call = Call("commit", version, client_id="client", client_host="/host", nonce="")
    check = exists(cluster)
    cluster.carry_out(cluster.coordinator.offsets.commit(call, request, check, cluster.at))
    answer = cluster.answers.pop("commit")
    return [ErrorCode(each.error_code) for each in answer.topics[0].partitions]


def commit_in_transaction(member: Member, epoch: int, *partitions: int) -> list[ErrorCode]:
    """What each partition of `t` is answered; nothing is applied."""
    request = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id=GROUP,
        producer_id=1,
        producer_epoch=0,
        generation_id=epoch,
        member_id=member.member_id,
        topics=[
            TxnOffsetCommitRequestTopic(
                name="t",
                partitions=[
                    TxnOffsetCommitRequestPartition(partition_index=each, committed_offset=1)
                    for each in partitions
                ],
            )
        ],
    )
    cluster = member.cluster
    call = Call("commit", 5, client_id="client", client_host="/host", nonce="")
    check = exists(cluster)
    decision = cluster.coordinator.offsets.commit_in_transaction(
        call,
        request,
        lambda topic, index: check(OffsetCommitRequestTopic(name=topic), index) == ErrorCode.NONE,
        cluster.at,
    )
    (reply,) = decision.replies
    return [ErrorCode(each.error_code) for each in reply.message.topics[0].partitions]


def indexes(share: Share) -> list[int]:
    return sorted(slot.partition for slot in share)


@pytest.mark.parametrize(
    ("topics", "regex", "epoch"),
    [
        (["t"], None, 2),
        (["absent"], None, 2),
        (["t"], "t.*", 2),
        ([], "t.*", 1),
        ([], "absent.*", 1),
        ([], None, 1),
    ],
)
def test_the_first_epoch_of_a_group(topics: list[str], regex: str | None, epoch: int) -> None:
    """A group is created with epoch 1, and a member that names topics raises it."""
    cluster = Cluster(World(t=3))
    member = Member(cluster, "a", topics, regex=regex)
    assert member.beat() is ErrorCode.NONE
    assert (member.epoch, cluster.group.epoch, cluster.group.target_epoch) == (epoch, epoch, epoch)


def test_a_member_without_topics_does_not_raise_the_epoch() -> None:
    """It changes nothing for the others; when it leaves, the epoch rises."""
    cluster = Cluster(World(t=3))
    a, b = Member(cluster, "a", ["t"]), Member(cluster, "b", [])
    settle(a, b)
    assert (a.epoch, b.epoch, cluster.group.state.value) == (2, 2, "Stable")
    b.leave()
    settle(a)
    assert a.epoch == 3


def test_a_kept_partition_may_be_committed_in_an_earlier_epoch() -> None:
    """A commit that was under way while the epoch rose is taken (KIP-1251), a zombie's is not."""
    cluster = Cluster(World(t=3))
    a, b = Member(cluster, "a", ["t"]), Member(cluster, "b", ["t"])
    settle(a)
    settle(a, b)
    kept, lost = indexes(a.owned), indexes(b.owned)
    assert (a.epoch, b.epoch) == (3, 3)
    none, stale = ErrorCode.NONE, ErrorCode.STALE_MEMBER_EPOCH
    assert commit(a, 3, *kept) == [none] * len(kept)
    assert commit(a, 2, *kept) == [none] * len(kept)
    assert commit(a, 2, *kept, *lost) == [stale] * 3, "all or nothing"
    assert commit(a, 2, *lost) == [stale] * len(lost)
    assert commit(a, 1, *kept) == [stale] * len(kept)
    assert commit(a, 4, *kept) == [stale] * len(kept)
    assert commit(b, 2, *lost) == [stale] * len(lost), "it got them in epoch 3"


def test_a_partition_to_be_given_back_may_be_committed_until_then() -> None:
    """The member still has it, and an earlier epoch counts as long as it does."""
    cluster = Cluster(World(t=3))
    a, b, c = (Member(cluster, each, ["t"]) for each in "abc")
    settle(a)
    settle(a, b)
    had = indexes(a.owned)
    c.beat()
    a.beat()
    assert len(cluster.group.current["a"].revoking) == 1
    assert commit(a, 3, *had) == [ErrorCode.NONE] * 2
    assert commit(a, 2, *had) == [ErrorCode.NONE] * 2
    assert commit(a, 1, *had) == [ErrorCode.STALE_MEMBER_EPOCH] * 2


def test_the_epochs_of_partitions_survive_a_change_of_coordinators() -> None:
    """They are written with what a member has."""
    cluster = Cluster(World(t=3))
    a, b = Member(cluster, "a", ["t"]), Member(cluster, "b", ["t"])
    settle(a)
    settle(a, b)
    cluster.fail_over()
    assert commit(a, 2, *indexes(a.owned)) == [ErrorCode.NONE] * len(a.owned)
    assert commit(b, 2, *indexes(b.owned)) == [ErrorCode.STALE_MEMBER_EPOCH] * len(b.owned)


def test_a_member_that_joins_again_keeps_the_epochs_of_its_partitions() -> None:
    """As in Kafka: nobody else had them in between."""
    cluster = Cluster(World(t=3))
    a, b = Member(cluster, "a", ["t"]), Member(cluster, "b", ["t"])
    settle(a)
    settle(a, b)
    again = Member(cluster, "a", ["t"])
    again.beat()
    kept = indexes(again.owned)
    assert commit(again, 2, *kept) == [ErrorCode.NONE] * len(kept)
    assert commit(again, 1, *kept) == [ErrorCode.STALE_MEMBER_EPOCH] * len(kept)


def test_a_transaction_answers_with_a_code_it_has() -> None:
    """TxnOffsetCommit has no STALE_MEMBER_EPOCH: ILLEGAL_GENERATION ends the transaction."""
    cluster = Cluster(World(t=3))
    a, b = Member(cluster, "a", ["t"]), Member(cluster, "b", ["t"])
    settle(a)
    settle(a, b)
    kept = indexes(a.owned)
    assert commit_in_transaction(a, 3, *kept) == [ErrorCode.NONE] * len(kept)
    assert commit_in_transaction(a, 2, *kept) == [ErrorCode.NONE] * len(kept)
    illegal = ErrorCode.ILLEGAL_GENERATION
    assert commit_in_transaction(a, 2, *indexes(b.owned)) == [illegal] * len(b.owned)
    assert commit_in_transaction(a, 1, *kept) == [illegal] * len(kept)
    assert commit_in_transaction(a, -1, *kept) == [illegal] * len(kept)
    stranger = Member(cluster, "x", ["t"])
    assert commit_in_transaction(stranger, 3, 0) == [ErrorCode.UNKNOWN_MEMBER_ID]


@pytest.mark.parametrize("version", [2, 8])
def test_a_commit_without_member_epochs_is_refused(version: int) -> None:
    """The versions before 9 cannot say STALE_MEMBER_EPOCH, so a valid epoch is refused, too."""
    cluster = Cluster(World(t=3))
    a = Member(cluster, "a", ["t"])
    settle(a)
    assert commit(a, 2, 0, version=version) == [ErrorCode.UNSUPPORTED_VERSION]
    stranger = Member(cluster, "x", ["t"])
    assert commit(stranger, 2, 0, version=version) == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_a_partition_that_does_not_exist_is_answered_with_that() -> None:
    """Also where the rest of the commit is refused."""
    cluster = Cluster(World(t=3))
    a = Member(cluster, "a", ["t"])
    settle(a)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(a, 7, 0, 99) == [ErrorCode.STALE_MEMBER_EPOCH, unknown]
    assert commit_in_transaction(a, 7, 0, 99) == [ErrorCode.ILLEGAL_GENERATION, unknown]


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"),
    [
        (None, -1, ErrorCode.NONE),
        (None, 2, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", 2, ErrorCode.UNKNOWN_MEMBER_ID),
        ("x", -1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("a", -1, ErrorCode.STALE_MEMBER_EPOCH),
        ("a", 1, ErrorCode.STALE_MEMBER_EPOCH),
        ("a", 2, ErrorCode.NONE),
    ],
)
def test_who_may_fetch_offsets_of_a_consumer_group(
    member_id: str | None, epoch: int, code: ErrorCode
) -> None:
    """An administrator, who names neither member nor epoch, and members in their epoch."""
    cluster = Cluster(World(t=3))
    settle(Member(cluster, "a", ["t"]))
    assert cluster.coordinator.offsets.check_member(GROUP, member_id, epoch) is code
    assert cluster.coordinator.offsets.check_member("other", member_id, epoch) is ErrorCode.NONE
