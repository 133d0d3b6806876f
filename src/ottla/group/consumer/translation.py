"""Translates subscriptions and assignments between classic and consumer protocol.

The classic protocol names topics, the consumer protocol their ids.
"""

from collections.abc import Iterable, Sequence

from ottla.base.errors import ErrorCode, OttlaError
from ottla.group.values.member import OfferedProtocol
from ottla.group.values.shares import AssignedSlot, Share, by_topic
from ottla.group.values.topics import TopicsView
from ottla.wire.errors import WireError
from ottla.wire.stored import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_versioned,
    encode_versioned,
    read_version,
)

# The user data of these is not needed any more: that of librdkafka's sticky assignor repeats what
# the member had.
_KNOWN_ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform")


def subscription_of(protocols: Sequence[OfferedProtocol]) -> ConsumerProtocolSubscription:
    """The topics a member reads: all its protocols name the same.

    Raises OttlaError (INCONSISTENT_GROUP_PROTOCOL) where the bytes are no consumer's.
    """
    try:
        return decode_versioned(ConsumerProtocolSubscription, protocols[0].metadata)
    except WireError as error:
        raise OttlaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"the metadata of assignor {protocols[0].name} is no subscription: {error}",
        ) from error


def owned_by(subscription: ConsumerProtocolSubscription, topics: TopicsView) -> Share:
    """The partitions that a member reports as owned."""
    return _share(((each.topic, each.partitions) for each in subscription.owned_partitions), topics)


def share_in(assignment: bytes, assignor: str | None, topics: TopicsView) -> Share:
    """The share that a leader's assignment stands for, as far as its topics exist.

    Raises OttlaError (INCONSISTENT_GROUP_PROTOCOL) where it cannot be carried over: the bytes are
    no consumer's, or an assignor that is not one of Kafka's has put something more into them.
    """
    if not assignment:
        return frozenset()
    try:
        read = decode_versioned(ConsumerProtocolAssignment, assignment)
    except WireError as error:
        raise OttlaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"it has an assignment that is none: {error}"
        ) from error
    if read.user_data and assignor not in _KNOWN_ASSIGNORS:
        raise OttlaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"its assignor {assignor} hands out data of its own, for which the consumer protocol "
            "has no place",
        )
    return _share(((each.topic, each.partitions) for each in read.assigned_partitions), topics)


def assignment_of(share: Share, protocols: Sequence[OfferedProtocol], topics: TopicsView) -> bytes:
    """An assignment as a leader would send it, in the member's version."""
    version = min(read_version(protocols[0].metadata), ConsumerProtocolAssignment.__versions__[1])
    named = [
        (topics.name_of(topic_id), partitions) for topic_id, partitions in by_topic(share).items()
    ]
    assigned = [
        AssignmentTopicPartition(topic=name, partitions=list(partitions))
        for name, partitions in named
        if name is not None
    ]
    return encode_versioned(ConsumerProtocolAssignment(assigned_partitions=assigned), version)


def _share(named: Iterable[tuple[str, Sequence[int]]], topics: TopicsView) -> Share:
    return frozenset(
        AssignedSlot(shape.id, partition)
        for name, partitions in named
        if (shape := topics.find(name)) is not None
        for partition in partitions
    )
