"""Range: splits each topic into as many runs of consecutive partitions as it has members."""

from collections.abc import Mapping, Sequence

from ottla.base.ids import TopicPartition
from ottla.client.assignors.subscriptions import Assignment, Subscription, member_order


class RangeAssignor:
    """The default of Java's consumer; the first members may get one partition more."""

    name = "range"
    is_cooperative = False

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        del owned, generation
        return None

    def assign(
        self, partition_counts: Mapping[str, int], members: Mapping[str, Subscription]
    ) -> Assignment:
        assignment: Assignment = {member_id: [] for member_id in members}
        ordered = sorted(members.items(), key=member_order)
        for topic in sorted(partition_counts):
            readers = [member_id for member_id, member in ordered if topic in member.topics]
            if not readers:
                continue
            share, rest = divmod(partition_counts[topic], len(readers))
            start = 0
            for rank, member_id in enumerate(readers):
                stop = start + share + (rank < rest)
                assignment[member_id] += [
                    TopicPartition(topic, number) for number in range(start, stop)
                ]
                start = stop
        return assignment
