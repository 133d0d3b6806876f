"""The algorithm of both sticky assignors: balance first, then as few moves as possible."""

from collections.abc import Iterable, Mapping
from itertools import chain

from ottla.base.ids import TopicPartition
from ottla.client.assignors.subscriptions import Assignment, Subscription

Claims = dict[str, list[TopicPartition]]


def owners(
    said: Mapping[str, tuple[Iterable[TopicPartition], int]],
) -> dict[TopicPartition, str | None]:
    """Return the owner of each partition, from the members' claims (partitions, generation).

    If two members claim a partition, the later generation wins; in the same generation neither owns
    it (None), because one claim must be wrong.
    """
    owner: dict[TopicPartition, str | None] = {}
    generation_of: dict[TopicPartition, int] = {}
    for member_id, (partitions, generation) in said.items():
        for partition in partitions:
            before = generation_of.get(partition)
            if before is None or generation > before:
                owner[partition], generation_of[partition] = member_id, generation
            elif generation == before and owner[partition] != member_id:
                owner[partition] = None
    return owner


def valid_claims(
    partition_counts: Mapping[str, int],
    members: Mapping[str, Subscription],
    said: Mapping[str, tuple[Iterable[TopicPartition], int]],
) -> Claims:
    """Return the partitions each member may keep: its own, of topics it still subscribes to."""
    owner = owners(said)
    return {
        member_id: [
            partition
            for partition in (said[member_id][0] if member_id in said else ())
            if owner[partition] == member_id
            and partition.partition < partition_counts.get(partition.topic, 0)
            and partition.topic in member.topics
        ]
        for member_id, member in members.items()
    }


def balanced(
    partition_counts: Mapping[str, int], members: Mapping[str, Subscription], claims: Claims
) -> Assignment:
    """Assign every partition of a topic that at least one member subscribes to."""
    wanted = {
        frozenset(set(member.topics) & partition_counts.keys()) for member in members.values()
    }
    everything = [
        TopicPartition(topic, number)
        for topic in sorted(chain.from_iterable(wanted) if len(wanted) != 1 else next(iter(wanted)))
        for number in range(partition_counts[topic])
    ]
    everything = list(dict.fromkeys(everything))
    if len(wanted) == 1:
        return _equal(everything, claims)
    return _unequal(everything, members, claims)


def _equal(everything: list[TopicPartition], claims: Claims) -> Assignment:
    """Assign when all members read the same topics: each gets the mean, rounded down or up."""
    least, with_more = divmod(len(everything), len(claims))
    most = least + (with_more > 0)
    assignment: Assignment = {}
    for member_id in sorted(claims):
        had = claims[member_id]
        if with_more and len(had) >= most:
            assignment[member_id] = had[:most]
            with_more -= 1
        else:
            assignment[member_id] = had[:least]
    given = set(chain.from_iterable(assignment.values()))
    free = iter([partition for partition in everything if partition not in given])
    # Members with `least` partitions, in the order in which they reach that number. They get the
    # remaining partitions, one each.
    at_least = [
        member_id for member_id in sorted(assignment) if len(assignment[member_id]) == least
    ]
    short = [member_id for member_id in sorted(assignment) if len(assignment[member_id]) < least]
    while short:
        # One partition each in turn.
        for member_id in list(short):
            assignment[member_id].append(next(free))
            if len(assignment[member_id]) == least:
                short.remove(member_id)
                at_least.append(member_id)
    for member_id, partition in zip(at_least, free, strict=False):
        assignment[member_id].append(partition)
    return assignment


def _unequal(
    everything: list[TopicPartition], members: Mapping[str, Subscription], claims: Claims
) -> Assignment:
    """Assign when members' topics differ: first free partitions, then rebalance."""
    assignment: Assignment = {member_id: list(claims[member_id]) for member_id in sorted(members)}
    readers = {
        topic: [member_id for member_id in sorted(members) if topic in members[member_id].topics]
        for topic in {partition.topic for partition in everything}
    }
    given = set(chain.from_iterable(assignment.values()))
    free = [partition for partition in everything if partition not in given]
    # Partitions with the fewest possible readers first, because they leave the least choice.
    for partition in sorted(free, key=lambda entry: (len(readers[entry.topic]), entry)):
        poorest = min(readers[partition.topic], key=lambda one: (len(assignment[one]), one))
        assignment[poorest].append(partition)
    while _even_out(assignment, readers):
        pass
    return assignment


def _even_out(assignment: Assignment, readers: Mapping[str, list[str]]) -> bool:
    """Move one partition to a member that has at least two fewer; return whether one moved."""
    for rich in sorted(assignment, key=lambda one: (-len(assignment[one]), one)):
        for partition in reversed(assignment[rich]):
            poor = min(readers[partition.topic], key=lambda one: (len(assignment[one]), one))
            if len(assignment[rich]) - len(assignment[poor]) >= 2:
                assignment[rich].remove(partition)
                assignment[poor].append(partition)
                return True
    return False
