"""Internal topics with fewer replicas than they were meant to have."""

from ottla.base.ids import TopicPartition
from ottla.client.admin.partitions import PartitionStatus
from ottla.diagnosis.cluster import too_few_replicas

FACTORS = {
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 2,
}


def standing(topic: str, *replicas: int) -> PartitionStatus:
    return PartitionStatus(TopicPartition(topic, 0), replicas[0], 0, replicas, replicas, 1)


def test_only_internal_topics_that_could_have_more_are_found() -> None:
    """As many as the setting says, and as brokers are alive; other topics are as asked for."""
    every = [
        standing("__consumer_offsets", 1),
        standing("__transaction_state", 1, 2),
        standing("t", 1),
    ]
    (finding,) = too_few_replicas(every, 3, FACTORS)
    assert finding.trouble == "too few replicas"
    assert finding.partitions == (TopicPartition("__consumer_offsets", 0),)
    assert finding.cause.startswith("__consumer_offsets was made with 1 replica, and offsets.")
    assert "--replicas 3" in finding.remedy
    (finding,) = too_few_replicas(every, 2, FACTORS)
    assert "--replicas 2" in finding.remedy
    assert too_few_replicas(every, 1, FACTORS) == []
    assert too_few_replicas(every, 3, {}) == []
