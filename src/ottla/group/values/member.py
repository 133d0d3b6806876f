"""A member of a classic group, and what its metadata says of the topics it reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.base.ids import TopicPartition
from ottla.group.values.notes import MemberIdentity
from ottla.wire.errors import WireError
from ottla.wire.stored import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_versioned,
)

# A request that waits for its answer. The core hands it back in a Reply and never looks inside.
Ticket = object


class OfferedProtocol(NamedTuple):
    """An assignor the member can work with, and its metadata for the leader."""

    name: str
    metadata: bytes


@dataclass(slots=True)
class Member:
    """A member as the coordinator knows it."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    # In the member's order of preference.
    protocols: tuple[OfferedProtocol, ...]
    assignment: bytes = b""
    # Soft state: the waiting requests. A restart loses them, and members send them again.
    joining: Ticket | None = None
    syncing: Ticket | None = None
    # The member has not finished its first join, so it cannot send heartbeats yet.
    is_new: bool = False

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_waiting(self) -> bool:
        """Whether the member waits for an answer, so that it need not send heartbeats."""
        return not self.is_new and (self.joining is not None or self.syncing is not None)

    @property
    def identity(self) -> MemberIdentity:
        """The member's identity in answers to administrators."""
        return MemberIdentity(
            self.member_id, self.client_id, self.client_host, self.group_instance_id
        )

    def metadata(self, protocol_name: str | None) -> bytes:
        """Its metadata for the leader under `protocol_name`, empty if it does not offer that."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        return b""

    def votes_for(self, candidates: set[str]) -> str:
        """The candidate that the member prefers."""
        return next(name for name, _ in self.protocols if name in candidates)


# The protocol type of consumers; Kafka Connect and others use their own.
CONSUMER_PROTOCOL_TYPE = "consumer"


def subscribed_topics(
    protocol_type: str | None, metadata: Sequence[bytes] | None
) -> frozenset[str] | None:
    """The topics in the members' subscriptions.

    `metadata` is None before a protocol is chosen. Returns None if the topics cannot be known:
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

    A member that revokes all partitions before it joins reports no owned partitions.
    """
    try:
        owned = decode_versioned(ConsumerProtocolSubscription, metadata).owned_partitions
    except WireError:
        return False
    return any(each.partitions for each in owned)


def assigned_partitions(assignment: bytes) -> frozenset[TopicPartition] | None:
    """The partitions of a member's assignment; None if the bytes are not a consumer's."""
    if not assignment:
        return frozenset()
    try:
        topics = decode_versioned(ConsumerProtocolAssignment, assignment).assigned_partitions
    except WireError:
        return None
    return frozenset(
        TopicPartition(each.topic, partition) for each in topics for partition in each.partitions
    )
