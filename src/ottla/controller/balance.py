"""Plans the fewest moves after which brokers have as many replicas and preferred leaders each.

A plan is a set of replica lists to reassign to; nothing is moved here.
"""

from collections.abc import Mapping

from ottla.base.ids import BrokerId, TopicPartition
from ottla.controller.reassignment import is_moving
from ottla.metadata.image import PartitionImage

Racks = Mapping[BrokerId, str | None]
Plan = dict[TopicPartition, tuple[BrokerId, ...]]


def plan_balance(partitions: Mapping[TopicPartition, PartitionImage], racks: Racks) -> Plan:
    """New replica lists, for those partitions only that change.

    `racks` has every live broker. First replicas go from the fullest brokers to the emptiest, and
    no partition is in fewer racks afterwards; then lists are reordered until each broker is first
    in as many as can be. What moves already and what has dead replicas is left alone.
    """
    lists = {
        name: list(partition.replicas)
        for name, partition in sorted(partitions.items())
        if not is_moving(partition) and all(broker in racks for broker in partition.replicas)
    }
    _spread_replicas(lists, racks)
    _spread_leaders(lists, racks)
    return {
        name: tuple(replicas)
        for name, replicas in lists.items()
        if tuple(replicas) != partitions[name].replicas
    }


def replica_counts(lists: Mapping[TopicPartition, list[BrokerId]], racks: Racks) -> dict[int, int]:
    """How many replicas each live broker has."""
    counts: dict[int, int] = dict.fromkeys(sorted(racks), 0)
    for replicas in lists.values():
        for broker in replicas:
            counts[broker] += 1
    return counts


def _spread_replicas(lists: dict[TopicPartition, list[BrokerId]], racks: Racks) -> None:
    counts = replica_counts(lists, racks)
    while True:
        move = _best_move(lists, counts, racks)
        if move is None:
            return
        name, source, goal = move
        replicas = lists[name]
        replicas[replicas.index(source)] = goal
        counts[source] -= 1
        counts[goal] += 1


def _best_move(
    lists: dict[TopicPartition, list[BrokerId]], counts: dict[int, int], racks: Racks
) -> tuple[TopicPartition, BrokerId, BrokerId] | None:
    """From the fullest broker that can give to the emptiest that can take; None at the end."""
    by_count = sorted(counts, key=lambda broker: (counts[broker], broker))
    for source in reversed(by_count):
        for goal in by_count:
            if counts[source] - counts[goal] < 2:
                break
            for name, replicas in lists.items():
                movable = source in replicas and goal not in replicas
                if movable and _keeps_racks(replicas, BrokerId(source), BrokerId(goal), racks):
                    return name, BrokerId(source), BrokerId(goal)
    return None


def _keeps_racks(replicas: list[BrokerId], source: BrokerId, goal: BrokerId, racks: Racks) -> bool:
    before = {racks[broker] for broker in replicas}
    after = {racks[broker] for broker in replicas if broker != source} | {racks[goal]}
    return len(after) >= len(before)


def _spread_leaders(lists: dict[TopicPartition, list[BrokerId]], racks: Racks) -> None:
    """Swap the first replica for another of the same list where that one is first less often."""
    firsts: dict[int, int] = dict.fromkeys(sorted(racks), 0)
    for replicas in lists.values():
        firsts[replicas[0]] += 1
    changed = True
    while changed:
        changed = False
        for replicas in lists.values():
            least = min(replicas, key=lambda broker: (firsts[broker], replicas.index(broker)))
            if firsts[replicas[0]] - firsts[least] >= 2:
                firsts[replicas[0]] -= 1
                firsts[least] += 1
                place = replicas.index(least)
                replicas[0], replicas[place] = replicas[place], replicas[0]
                changed = True
