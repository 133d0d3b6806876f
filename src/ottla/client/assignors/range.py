"""Range and round robin: assignors that keep no state."""

from collections.abc import Mapping, Sequence

from ottla.base.ids import TopicPartition
from ottla.client.assignors.subscriptions import Assignment, Subscription, member_order


class RangeAssignor:
    """Assigns ranges of partitions, as Java's default. The first members may get one more."""

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


class RoundRobinAssignor:
    """Assigns each partition to the next member that subscribes to its topic."""

    name = "roundrobin"
    is_cooperative = False

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        del owned, generation
        return None

    def assign(
        self, partition_counts: Mapping[str, int], members: Mapping[str, Subscription]
    ) -> Assignment:
        assignment: Assignment = {member_id: [] for member_id in members}
        ordered = sorted(members.items(), key=member_order)
        wanted = {topic for member in members.values() for topic in member.topics}
        turn = 0
        for topic in sorted(wanted & partition_counts.keys()):
            for number in range(partition_counts[topic]):
                while topic not in ordered[turn % len(ordered)][1].topics:
                    turn += 1
                assignment[ordered[turn % len(ordered)][0]].append(TopicPartition(topic, number))
                turn += 1
        return assignment
