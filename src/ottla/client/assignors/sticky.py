"""The cooperative sticky assignor: balanced assignments in which members keep partitions."""

from collections.abc import Mapping, Sequence
from struct import Struct

from ottla.base.ids import TopicPartition
from ottla.client.assignors.balance import balanced, owners, valid_claims
from ottla.client.assignors.subscriptions import Assignment, Subscription

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
