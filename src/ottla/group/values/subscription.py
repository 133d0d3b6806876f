"""The topics that the members of a group read, as far as their metadata names them."""

from collections.abc import Sequence

from ottla.base.ids import TopicPartition
from ottla.wire.errors import WireError
from ottla.wire.stored import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_versioned,
)

# The protocol type of consumers; Kafka Connect and others use their own.
CONSUMER_PROTOCOL_TYPE = "consumer"


def subscribed_topics(
    protocol_type: str | None, metadata: Sequence[bytes] | None
) -> frozenset[str] | None:
    """The topics in the members' subscriptions.

    `metadata` is None before a protocol is chosen. Returns None where the topics cannot be known:
    another protocol type, or bytes that are no subscription.
    """
    if protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    if metadata is None:
        return frozenset()
    topics: set[str] = set()
    for each in metadata:
        try:
            topics.update(decode_versioned(ConsumerProtocolSubscription, each).topics)
        except WireError:
            return None
    return frozenset(topics)


def keeps_partitions(metadata: bytes) -> bool:
    """Whether the member continues reading during a rebalance (KIP-429).

    A member that revokes everything first names no partitions.
    """
    try:
        owned = decode_versioned(ConsumerProtocolSubscription, metadata).owned_partitions
    except WireError:
        return False
    return any(each.partitions for each in owned)


def assigned_partitions(assignment: bytes) -> frozenset[TopicPartition] | None:
    """The partitions of a member's assignment; None where the bytes are no consumer's."""
    if not assignment:
        return frozenset()
    try:
        topics = decode_versioned(ConsumerProtocolAssignment, assignment).assigned_partitions
    except WireError:
        return None
    return frozenset(
        TopicPartition(each.topic, partition) for each in topics for partition in each.partitions
    )
