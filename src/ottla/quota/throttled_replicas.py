"""Which replicas are throttled (KIP-73), by two settings of topics.

They are `leader.replication.throttled.replicas` and `follower.replication.throttled.replicas`.
"""

from collections.abc import Mapping, Sequence

from ottla.base.ids import BrokerId

# Partitions by topic; None means all partitions of the topic.
ThrottledPartitions = Mapping[str, frozenset[int] | None]

_ALL = "*"


def throttled_here(items: Sequence[str], broker_id: BrokerId) -> frozenset[int] | None:
    """The partitions whose replica on `broker_id` is throttled; None for all.

    `items` are `partition:broker`, or a single `*`; they were validated when they were set.
    """
    if _ALL in items:
        return None
    pairs = (item.split(":") for item in items)
    return frozenset(int(partition) for partition, broker in pairs if int(broker) == broker_id)


def is_throttled(throttled: ThrottledPartitions, topic: str, partition: int) -> bool:
    """Whether a partition is in `throttled`."""
    if topic not in throttled:
        return False
    partitions = throttled[topic]
    return partitions is None or partition in partitions
