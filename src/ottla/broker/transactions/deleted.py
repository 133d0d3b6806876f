"""Distinguishes deleted partitions from those that are too new for this broker's image.

The controller updates one broker after the other, so an image may lack a topic that its leaders
serve already. The store has the truth.
"""

from collections.abc import Iterable

from ottla.base.ids import TopicPartition
from ottla.coordination.interface.store import Store
from ottla.metadata import nodes, paths


async def deleted_among(
    store: Store, partitions: Iterable[TopicPartition]
) -> frozenset[TopicPartition]:
    """The partitions that do not exist, or whose topic is being deleted. Raises OttlaError."""
    counts: dict[str, int] = {}
    gone = []
    for partition in partitions:
        if partition.topic not in counts:
            counts[partition.topic] = await _partitions_of(store, partition.topic)
        if partition.partition >= counts[partition.topic]:
            gone.append(partition)
    return frozenset(gone)


async def _partitions_of(store: Store, topic: str) -> int:
    """The number of a topic's partitions; 0 if it is deleted or marked for deletion."""
    path = paths.topic(topic)
    node = await store.get(path)
    if node is None or await store.get(paths.topic_deletion(topic)) is not None:
        return 0
    return len(nodes.decode_topic(path, node.data).replicas)
