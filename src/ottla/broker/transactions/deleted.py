"""Tells partitions that are deleted from those that this broker has not been told of yet.

An image may lack a topic that its leaders serve already: it comes with the controller's news, one
broker after the other. What holds stands in the store.
"""

from collections.abc import Iterable

from ottla.base.ids import TopicPartition
from ottla.coordination.store import Store
from ottla.metadata import nodes, paths


async def deleted_among(
    store: Store, partitions: Iterable[TopicPartition]
) -> frozenset[TopicPartition]:
    """Those that do not exist, or whose topic is being deleted. Raises OttlaError."""
    counts: dict[str, int] = {}
    gone = []
    for partition in partitions:
        if partition.topic not in counts:
            counts[partition.topic] = await _partitions_of(store, partition.topic)
        if partition.partition >= counts[partition.topic]:
            gone.append(partition)
    return frozenset(gone)


async def _partitions_of(store: Store, topic: str) -> int:
    """How many partitions a topic has; 0 for one that is gone, or going."""
    path = paths.topic(topic)
    node = await store.get(path)
    if node is None or await store.get(paths.topic_deletion(topic)) is not None:
        return 0
    return len(nodes.decode_topic(path, node.data).replicas)
