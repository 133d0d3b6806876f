"""Finds partitions whose leadership should return to the preferred leader."""

from collections.abc import Iterable, Mapping

from ottla.base.ids import BrokerId, TopicPartition
from ottla.controller.reassignment import is_moving
from ottla.metadata.image import PartitionImage


def imbalance(partitions: Iterable[PartitionImage]) -> dict[BrokerId, float]:
    """By preferred leader, the share of its partitions that others lead, from 0 to 1."""
    owned: dict[BrokerId, int] = {}
    away: dict[BrokerId, int] = {}
    for partition in partitions:
        preferred = partition.replicas[0]
        owned[preferred] = owned.get(preferred, 0) + 1
        if partition.leader != preferred:
            away[preferred] = away.get(preferred, 0) + 1
    return {broker: away.get(broker, 0) / count for broker, count in owned.items()}


def to_return(
    partitions: Mapping[TopicPartition, PartitionImage],
    live: Mapping[BrokerId, int],
    percentage: int,
) -> list[TopicPartition]:
    """Partitions whose preferred leader can lead, of brokers whose imbalance exceeds the limit.

    `percentage` is `leader.imbalance.per.broker.percentage`.
    """
    shares = imbalance(partitions.values())
    return [
        name
        for name, partition in partitions.items()
        if partition.leader != partition.replicas[0]
        and partition.replicas[0] in live
        and partition.replicas[0] in partition.isr
        and not is_moving(partition)
        and shares[partition.replicas[0]] * 100 > percentage
    ]
