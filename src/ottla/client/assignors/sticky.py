"""Sticky and cooperative sticky: balanced assignments in which members keep partitions."""

from collections.abc import Mapping, Sequence
from struct import Struct, error

from ottla.base.ids import TopicPartition, by_topic
from ottla.client.assignors.balance import balanced, owners, valid_claims
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


_GENERATION = Struct(">i")


class CooperativeStickyAssignor:
    """Revokes a moving partition in one generation and assigns it in the next."""

    name = "cooperative-sticky"
    is_cooperative = True

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        """Return the generation, for members that read an older form of the protocol."""
        del owned
        return _GENERATION.pack(generation)

    def assign(
        self, partition_counts: Mapping[str, int], members: Mapping[str, Subscription]
    ) -> Assignment:
        said = {
            member_id: (member.owned, _generation_of(member))
            for member_id, member in members.items()
        }
        claims = valid_claims(partition_counts, members, said)
        assignment = balanced(partition_counts, members, claims)
        # Not assigned until the member that owns or claims it has revoked it.
        owner = owners(said)
        return {
            member_id: [
                partition
                for partition in partitions
                if owner.get(partition, member_id) == member_id
            ]
            for member_id, partitions in assignment.items()
        }


def _generation_of(member: Subscription) -> int:
    if member.generation >= 0 or not member.user_data or len(member.user_data) < 4:
        return member.generation
    generation: int = _GENERATION.unpack_from(member.user_data)[0]
    return generation
