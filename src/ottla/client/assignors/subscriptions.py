"""Subscriptions and assignments of classic groups, in the bytes of Java's consumer protocol."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ottla.base.ids import TopicPartition, by_topic
from ottla.wire.stored import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    SubscriptionTopicPartition,
    decode_versioned,
    encode_versioned,
)

PROTOCOL_TYPE = "consumer"
_SUBSCRIPTION_VERSION = 3
_ASSIGNMENT_VERSION = 3


@dataclass(frozen=True, slots=True)
class Subscription:
    """The topics that a member subscribes to, and the partitions it owned in `generation`.

    A generation of -1 means that it owned none.
    """

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    user_data: bytes | None = None
    instance_id: str | None = None


Assignment = dict[str, list[TopicPartition]]


class Assignor(Protocol):
    """Splits the partitions of topics among the members of a group. Pure."""

    # The name known to brokers and other clients.
    name: str
    # Whether members keep their partitions while the group rebalances (KIP-429).
    is_cooperative: bool

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        """Return the user data that a member sends with its subscription."""
        ...

    def assign(
        self, partition_counts: Mapping[str, int], members: Mapping[str, Subscription]
    ) -> Assignment:
        """Return partitions by member id; missing topics are not in `partition_counts`."""
        ...


def encode_subscription(
    topics: Iterable[str],
    user_data: bytes | None,
    owned: Iterable[TopicPartition],
    generation: int,
) -> bytes:
    """Encode a subscription for JoinGroup."""
    message = ConsumerProtocolSubscription(
        topics=sorted(topics),
        user_data=user_data,
        owned_partitions=[
            SubscriptionTopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(owned).items()
        ],
        generation_id=generation,
    )
    return bytes(encode_versioned(message, _SUBSCRIPTION_VERSION))


def decode_subscription(buffer: bytes | memoryview, instance_id: str | None) -> Subscription:
    """Decode a member's subscription. Raises WireError."""
    message = decode_versioned(ConsumerProtocolSubscription, buffer)
    return Subscription(
        topics=tuple(message.topics),
        owned=_listed(message.owned_partitions),
        generation=message.generation_id,
        user_data=None if message.user_data is None else bytes(message.user_data),
        instance_id=instance_id,
    )


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    """Encode an assignment for SyncGroup."""
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            AssignmentTopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(partitions).items()
        ]
    )
    return bytes(encode_versioned(message, _ASSIGNMENT_VERSION))


def decode_assignment(buffer: bytes | memoryview) -> tuple[TopicPartition, ...]:
    """Decode an assignment; empty bytes mean no partitions. Raises WireError."""
    if not len(buffer):
        return ()
    return _listed(decode_versioned(ConsumerProtocolAssignment, buffer).assigned_partitions)


def _listed(
    stored: Iterable[SubscriptionTopicPartition] | Iterable[AssignmentTopicPartition],
) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(entry.topic, number) for entry in stored for number in entry.partitions
    )


def member_order(member: tuple[str, Subscription]) -> tuple[bool, str]:
    """Return Java's sort key of members: static ones first, by instance id; then by member id."""
    member_id, subscription = member
    if subscription.instance_id is not None:
        return (False, subscription.instance_id)
    return (True, member_id)
