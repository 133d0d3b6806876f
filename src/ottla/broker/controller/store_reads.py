"""Reads the controller's state from the store."""

from collections.abc import Sequence

from ottla.base.ids import BrokerId, TopicPartition
from ottla.coordination.interface.store import Store
from ottla.metadata import nodes, paths
from ottla.metadata.image import BrokerImage, PartitionImage, TopicImage

# Fewer nodes than this are read one by one, more with one listing.
_FEW = 16


async def read_brokers(store: Store) -> tuple[dict[BrokerId, BrokerImage], dict[BrokerId, int]]:
    """Read the live brokers with their epochs, and those with an unclean stop to act on.

    The marks of unclean stops are read last, and with the version at which they were seen: a
    broker whose epoch is known has none that is missed.
    """
    ids = await store.subtree(paths.BROKER_IDS)
    epochs = await store.subtree(paths.BROKER_EPOCHS)
    marks = await store.subtree(paths.UNCLEAN_STOPS)
    brokers: dict[BrokerId, BrokerImage] = {}
    for path, node in ids.items():
        if path == paths.BROKER_IDS:
            continue
        epoch = epochs.get(paths.broker_epoch(int(path.rpartition("/")[2])))
        broker = nodes.decode_broker(path, node.data, 0 if epoch is None else epoch.version + 1)
        brokers[broker.id] = broker
    unclean = {
        BrokerId(int(path.rpartition("/")[2])): node.version
        for path, node in marks.items()
        if path != paths.UNCLEAN_STOPS
    }
    return brokers, unclean


async def read_states(
    store: Store, names: Sequence[TopicPartition], topics: dict[str, TopicImage]
) -> list[tuple[TopicPartition, PartitionImage]]:
    """Read the states of the partitions of `topics`, with their known replicas."""
    if len(names) > _FEW:
        tree = await store.subtree(paths.TOPICS)
    found: list[tuple[TopicPartition, PartitionImage]] = []
    for name in names:
        path = paths.partition_state(name.topic, name.partition)
        node = tree.get(path) if len(names) > _FEW else await store.get(path)
        if node is None:
            continue
        known = topics[name.topic].partitions[name.partition]
        state = nodes.decode_partition(path, node.data, known.replicas, node.version)
        found.append((name, state._replace(adding=known.adding, removing=known.removing)))
    return found
