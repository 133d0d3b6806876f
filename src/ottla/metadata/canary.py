"""The topic `__ottla_canary`: a partition led by each broker, for records that prove the cluster.

The brokers' canary and `ottla cluster ready --prove` both create it, and share it. Pure.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

TOPIC = "__ottla_canary"
REPLICAS = 3
_KEPT_MS = "600000"
# Records are kept for minutes. The broker's timestamps show its clock.
CONFIGS: Mapping[str, str] = MappingProxyType(
    {
        "cleanup.policy": "delete",
        "message.timestamp.type": "LogAppendTime",
        "retention.ms": _KEPT_MS,
        "segment.bytes": "1048576",
        "segment.ms": _KEPT_MS,
    }
)


def replicas_for(broker: int, brokers: Sequence[int], factor: int = REPLICAS) -> tuple[int, ...]:
    """Return the replicas of the partition that `broker` leads: it, and the next ones in turn."""
    order = sorted(brokers)
    at = order.index(broker)
    return tuple((order[at:] + order[:at])[:factor])


def partition_of(broker: int, lists: Sequence[Sequence[int]]) -> int | None:
    """Return the first partition whose preferred leader is `broker`; None if there is none."""
    return next((index for index, replicas in enumerate(lists) if replicas[0] == broker), None)


def missing(brokers: Sequence[int], lists: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Return the replica lists to add, so that each broker is a preferred leader."""
    factor = len(lists[0]) if lists else REPLICAS
    return [
        replicas_for(broker, brokers, factor)
        for broker in sorted(brokers)
        if partition_of(broker, lists) is None
    ]
