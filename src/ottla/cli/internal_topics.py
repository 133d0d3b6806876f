"""Internal topics that have fewer replicas than they were meant to have. Pure.

They keep the replicas they were made with. Whoever had one broker when the first group came, and
has three now, has one copy of all committed offsets.
"""

from collections.abc import Iterable, Mapping

from ottla.base.ids import TopicPartition
from ottla.cli.health import Finding, Trouble
from ottla.client.admin.partitions import PartitionStanding

# By topic: the setting of the brokers that says how many replicas it is made with.
FACTORS: Mapping[str, str] = {
    "__consumer_offsets": "offsets.topic.replication.factor",
    "__transaction_state": "transaction.state.log.replication.factor",
    "__share_group_state": "share.coordinator.state.topic.replication.factor",
}


def too_few_replicas(
    standings: Iterable[PartitionStanding], brokers: int, factors: Mapping[str, int]
) -> list[Finding]:
    """Topics with fewer replicas than their setting says, and than `brokers` that live could have.

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
            f"{topic} was made with {_counted(have)}, and {FACTORS[topic]} asks for "
            f"{factors[FACTORS[topic]]}: one broker that is lost may take it along",
            f"`ottla partition plan {topic} --replicas {wanted} -o json > plan.json`, then "
            "`ottla partition reassign --plan plan.json`",
            tuple(names),
        )
        for (topic, have, wanted), names in found.items()
    ]


def _counted(replicas: int) -> str:
    return f"{replicas} replica{'' if replicas == 1 else 's'}"
