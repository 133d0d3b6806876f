"""Which topics the members of a group read, as far as their metadata tells."""

from collections.abc import Sequence

from ottla.wire.errors import WireError
from ottla.wire.stored import ConsumerProtocolSubscription, decode_versioned

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
