"""The store operations that create, grow and delete a topic, each in one `multi`."""

from collections.abc import Sequence

from ottla.base.ids import TopicPartition
from ottla.coordination.interface.store import Create, Delete, Operation, Set
from ottla.metadata import paths
from ottla.metadata.image import TopicImage
from ottla.metadata.nodes import encode_configs, encode_partition, encode_topic, topic_node
from ottla.metadata.notices import encode_isr_changes

_CONTROLLER_EPOCH = 0


def creation(topic: TopicImage) -> list[Operation]:
    """Return the operations that create a topic; they fail with NodeExists if it exists."""
    operations: list[Operation] = [
        Create(paths.topic_config(topic.name), encode_configs(topic.configs)),
        Create(paths.topic(topic.name), encode_topic(topic_node(topic))),
        Create(paths.topic_mark(topic.id)),
        Create(paths.partitions(topic.name)),
    ]
    for index in range(len(topic.partitions)):
        operations += _partition(topic, index)
    return operations


def growth(before: TopicImage, after: TopicImage) -> list[Operation]:
    """Return the operations that add partitions to a topic and notify the controller."""
    operations: list[Operation] = [
        Set(paths.topic(after.name), encode_topic(topic_node(after)), before.version)
    ]
    added = range(len(before.partitions), len(after.partitions))
    for index in added:
        operations += _partition(after, index)
    operations.append(announcement([TopicPartition(after.name, index) for index in added]))
    return operations


def removal(topic: TopicImage) -> list[Operation]:
    """Return the operations that delete all nodes of a topic, and its deletion mark last."""
    operations: list[Operation] = []
    for index in range(len(topic.partitions)):
        operations.append(Delete(paths.partition_state(topic.name, index)))
        operations.append(Delete(paths.partition(topic.name, index)))
    operations += [
        Delete(paths.partitions(topic.name)),
        Delete(paths.topic(topic.name)),
        Delete(paths.topic_mark(topic.id)),
        Delete(paths.topic_config(topic.name)),
        Delete(paths.topic_deletion(topic.name)),
    ]
    return operations


def announcement(changed: Sequence[TopicPartition]) -> Operation:
    """Return the operation that notifies the controller of changed partition states."""
    return Create(f"{paths.ISR_CHANGES}/isr_change_", encode_isr_changes(changed), sequential=True)


def _partition(topic: TopicImage, index: int) -> list[Operation]:
    state = encode_partition(topic.partitions[index], _CONTROLLER_EPOCH)
    return [
        Create(paths.partition(topic.name, index)),
        Create(paths.partition_state(topic.name, index), state),
    ]
