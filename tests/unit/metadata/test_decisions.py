"""Decisions are remembered, the latest of each partition, and no more than there is room for."""

from ottla.base.ids import BrokerId, TopicPartition
from ottla.metadata.decisions import Decision, DecisionKind, Decisions


def decision(partition: int, at_ms: int, topic: str = "flights") -> Decision:
    return Decision(
        DecisionKind.ELECTED,
        TopicPartition(topic, partition),
        BrokerId(1),
        3,
        "broker 2 is dead",
        "1 is the first live replica in the ISR [1, 2]",
        None,
        at_ms,
    )


def test_the_latest_of_a_partition_are_kept_in_order() -> None:
    """A partition that is decided about often does not push others out."""
    decisions = Decisions(per_partition=2)
    decisions.record(decision(1, 0))
    for at_ms in range(5):
        decisions.record(decision(0, at_ms))
    assert [held.at_ms for held in decisions.of(TopicPartition("flights", 0))] == [3, 4]
    assert [held.at_ms for held in decisions.of(TopicPartition("flights", 1))] == [0]
    assert decisions.of(TopicPartition("flights", 2)) == ()


def test_partitions_decided_about_longest_ago_are_forgotten() -> None:
    """The memory is bounded however many partitions there are."""
    decisions = Decisions(partitions=2)
    decisions.record(decision(0, 0))
    decisions.record(decision(1, 1))
    decisions.record(decision(0, 2))
    decisions.record(decision(2, 3))
    assert decisions.of(TopicPartition("flights", 1)) == ()
    assert len(decisions.of(TopicPartition("flights", 0))) == 2


def test_a_deleted_topic_is_forgotten() -> None:
    """A topic made anew under the same name has no past."""
    decisions = Decisions()
    decisions.record(decision(0, 0))
    decisions.record(decision(0, 0, topic="trains"))
    decisions.forget("flights")
    assert decisions.of(TopicPartition("flights", 0)) == ()
    assert len(decisions.of(TopicPartition("trains", 0))) == 1
