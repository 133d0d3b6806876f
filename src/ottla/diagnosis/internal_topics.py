"""Internal topics that have fewer replicas than they were meant to have. Pure.

An internal topic keeps the replicas it was created with. A cluster that had one broker when its
first group committed, and has three now, still has one copy of all committed offsets.
"""

from collections.abc import Iterable, Mapping

from ottla.base.ids import TopicPartition
from ottla.base.quantities import counted
from ottla.client.admin.partitions import PartitionStanding
from ottla.diagnosis.findings import Finding, Trouble

# By topic: the setting of the brokers that says how many replicas it is made with.
FACTORS: Mapping[str, str] = {
    "__consumer_offsets": "offsets.topic.replication.factor",
    "__transaction_state": "transaction.state.log.replication.factor",
    "__share_group_state": "share.coordinator.state.topic.replication.factor",
}


def too_few_replicas(
    standings: Iterable[PartitionStanding], brokers: int, factors: Mapping[str, int]
) -> list[Finding]:
    """Topics with fewer replicas than their setting says and than there are live `brokers`.

    `factors` are the values of the settings by their names.
    """
    found: dict[tuple[str, int, int], list[TopicPartition]] = {}
    for one in standings:
        setting = FACTORS.get(one.name.topic)
        wanted = min(factors.get(setting, 1), brokers) if setting else 1
        if len(one.replicas) < wanted:
            found.setdefault((one.name.topic, len(one.replicas), wanted), []).append(one.name)
    return [
        Finding(
            Trouble.TOO_FEW_REPLICAS,
            f"{topic} was made with {counted(have, 'replica')}, and {FACTORS[topic]} asks for "
            f"{factors[FACTORS[topic]]}: one broker that is lost may take it along",
            f"`ottla partition plan {topic} --replicas {wanted} -o json > plan.json`, then "
            "`ottla partition reassign --plan plan.json`",
            tuple(names),
        )
        for (topic, have, wanted), names in found.items()
    ]
