"""What creating, growing and deleting a topic writes: one `multi` each."""

from ottla.coordination.store import Create, Delete, Operation, Set
from ottla.metadata import paths
from ottla.metadata.image import TopicImage
from ottla.metadata.nodes import TopicNode, encode_configs, encode_partition, encode_topic

_CONTROLLER_EPOCH = 0


def creation(topic: TopicImage) -> list[Operation]:
    """Make the topic's nodes; fails with NodeExists where there are any."""
    operations: list[Operation] = [
        Create(paths.topic_config(topic.name), encode_configs(topic.configs)),
        Create(paths.topic(topic.name), encode_topic(_node(topic))),
        Create(paths.partitions(topic.name)),
    ]
    for index in range(len(topic.partitions)):
        operations += _partition(topic, index)
    return operations


def growth(before: TopicImage, after: TopicImage) -> list[Operation]:
    """Add the partitions that `after` has and `before` lacks; the first result is a version."""
    operations: list[Operation] = [
        Set(paths.topic(after.name), encode_topic(_node(after)), before.version)
    ]
    for index in range(len(before.partitions), len(after.partitions)):
        operations += _partition(after, index)
    return operations


def removal(topic: TopicImage) -> list[Operation]:
    """Take out everything of a topic, and last the mark of its deletion."""
    operations: list[Operation] = []
    for index in range(len(topic.partitions)):
        operations.append(Delete(paths.partition_state(topic.name, index)))
        operations.append(Delete(paths.partition(topic.name, index)))
    operations += [
        Delete(paths.partitions(topic.name)),
        Delete(paths.topic(topic.name)),
        Delete(paths.topic_config(topic.name)),
        Delete(paths.topic_deletion(topic.name)),
    ]
    return operations


def _node(topic: TopicImage) -> TopicNode:
    return TopicNode(topic.id, tuple(partition.replicas for partition in topic.partitions))


def _partition(topic: TopicImage, index: int) -> list[Operation]:
    state = encode_partition(topic.partitions[index], _CONTROLLER_EPOCH)
    return [
        Create(paths.partition(topic.name, index)),
        Create(paths.partition_state(topic.name, index), state),
    ]
