"""Which replicas are throttled: the lists `…replication.throttled.replicas` of topics."""

from collections.abc import Mapping, Sequence

from ottla.base.ids import BrokerId

# Partitions by topic; None stands for all of a topic's.
ThrottledPartitions = Mapping[str, frozenset[int] | None]

_ALL = "*"


def throttled_here(items: Sequence[str], broker_id: BrokerId) -> frozenset[int] | None:
    """The partitions whose replica on `broker_id` is throttled; None for all.

    `items` are `partition:broker`, or one `*`; they were checked before they were stored.
    """
    if _ALL in items:
        return None
    pairs = (item.split(":") for item in items)
    return frozenset(int(partition) for partition, broker in pairs if int(broker) == broker_id)


def is_throttled(throttled: ThrottledPartitions, topic: str, partition: int) -> bool:
    """Whether a partition is among them."""
    if topic not in throttled:
        return False
    partitions = throttled[topic]
    return partitions is None or partition in partitions
