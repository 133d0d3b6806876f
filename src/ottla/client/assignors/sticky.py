"""Sticky: balanced, and members keep partitions, but all are revoked during a rebalance."""

from collections.abc import Mapping, Sequence
from struct import Struct, error

from ottla.base.ids import TopicPartition, by_topic
from ottla.client.assignors.balance import balanced, valid_claims
from ottla.client.assignors.subscriptions import Assignment, Subscription

_COUNT = Struct(">i")
_LENGTH = Struct(">h")


class StickyAssignor:
    """Keeps state in the members' user data, in the format of Java's StickyAssignor (KIP-54)."""

    name = "sticky"
    is_cooperative = False

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        """Return the topics with their partitions, then the generation."""
        if not owned:
            return None
        topics = by_topic(owned)
        written = bytearray(_COUNT.pack(len(topics)))
        for topic, numbers in topics.items():
            name = topic.encode()
            written += _LENGTH.pack(len(name)) + name + _COUNT.pack(len(numbers))
            for number in numbers:
                written += _COUNT.pack(number)
        return bytes(written + _COUNT.pack(generation))

    def assign(
        self, partition_counts: Mapping[str, int], members: Mapping[str, Subscription]
    ) -> Assignment:
        said = {member_id: remembered(member.user_data) for member_id, member in members.items()}
        return balanced(partition_counts, members, valid_claims(partition_counts, members, said))


def remembered(user_data: bytes | None) -> tuple[list[TopicPartition], int]:
    """Return a member's former partitions and generation; nothing if its data is unreadable."""
    partitions: list[TopicPartition] = []
    if not user_data:
        return partitions, -1
    try:
        (topics,) = _COUNT.unpack_from(user_data, 0)
        position = 4
        for _ in range(topics):
            (length,) = _LENGTH.unpack_from(user_data, position)
            topic = user_data[position + 2 : position + 2 + length].decode()
            position += 2 + length
            (count,) = _COUNT.unpack_from(user_data, position)
            position += 4
            for _ in range(count):
                (number,) = _COUNT.unpack_from(user_data, position)
                partitions.append(TopicPartition(topic, number))
                position += 4
        # The first version of this format had no generation.
        generation = _COUNT.unpack_from(user_data, position)[0] if position < len(user_data) else -1
    except (error, UnicodeDecodeError):
        return [], -1
    return partitions, generation
