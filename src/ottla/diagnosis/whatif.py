"""Predicts what a change of the cluster does, by the controller's own decisions on a copy of it.

The copy is what an administrator sees: leaders, ISR, ELR, settings, racks, sizes. Apache Kafka's
controller decides alike; its quorum of controllers is not part of the copy.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicPartition
from ottla.client.admin import Admin
from ottla.client.admin.configs import ConfigSource
from ottla.client.admin.partitions import PartitionStatus, Reassignment
from ottla.controller.balance import balanced
from ottla.controller.election import Change, How, Rules, move_away, settle, without
from ottla.diagnosis.cluster import live_controller
from ottla.group.records.stored import partition_of
from ottla.metadata.image import NO_LEADER, PartitionImage
from ottla.metadata.in_sync import effective_min_isr

MIN_ISR = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"
_OFFSETS = "__consumer_offsets"
_CAUSE = "what if"
# Every live broker has this epoch in the copy, as if none had restarted since its elections.
_EPOCH = 1


@dataclass(frozen=True, slots=True)
class ClusterCopy:
    """A copy of a cluster's state. `racks` has the live brokers, `sizes` are bytes per replica.

    `own` has the names of the topics that set `min.insync.replicas` themselves.
    """

    partitions: Mapping[TopicPartition, PartitionImage]
    rules: Mapping[str, Rules]
    racks: Mapping[int, str | None]
    own: frozenset[str] = frozenset()
    sizes: Mapping[TopicPartition, int] | None = None
    groups: tuple[str, ...] = ()
    controller: int | None = None

    @property
    def live(self) -> dict[BrokerId, int]:
        return {BrokerId(broker): _EPOCH for broker in self.racks}

    def can_write(self, name: TopicPartition) -> bool:
        """Return whether a partition accepts acks=all."""
        one = self.partitions[name]
        least = effective_min_isr(one, self.rules[name.topic].min_isr)
        return one.leader != NO_LEADER and len(one.isr) >= least


class LeaderMove(NamedTuple):
    """A partition whose leader changes; `after` is -1 if it has none then."""

    name: TopicPartition
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a change does. The lists have only what is not so already.

    `read_only` refuse acks=all, `one_copy` have a single in-sync replica left, `lossy` get a leader
    that may lack acknowledged records. `groups_move` change their coordinator, `groups_stop` have
    none. `next` counts for each broker left the partitions that stop being writable if it stops
    next.
    """

    after: ClusterCopy
    offline: tuple[TopicPartition, ...]
    read_only: tuple[TopicPartition, ...]
    one_copy: tuple[TopicPartition, ...]
    lossy: tuple[TopicPartition, ...]
    leaders: tuple[LeaderMove, ...]
    groups_move: tuple[str, ...]
    groups_stop: tuple[str, ...]
    next: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Growth:
    """What new brokers would take over: new replica lists, and the bytes that are copied.

    `replicas` and `leads` have the numbers per broker before and after.
    """

    added: tuple[int, ...]
    moves: Mapping[TopicPartition, tuple[int, ...]]
    copied_bytes: int
    replicas: Mapping[int, tuple[int, int]]
    leads: Mapping[int, tuple[int, int]]


async def copied(admin: Admin) -> ClusterCopy:
    """Copy the state of a cluster."""
    found = await admin.cluster.describe()
    standings = await admin.partitions.describe()
    moving = await admin.partitions.reassignments()
    names = sorted({one.name.topic for one in standings})
    settings = await admin.configs.describe_topics(names, [MIN_ISR, UNCLEAN])
    racks = {broker.broker_id: broker.rack for broker in found.brokers}
    rules, own = {}, set()
    for name in names:
        entries = settings.get(name, {})
        least, unclean = entries.get(MIN_ISR), entries.get(UNCLEAN)
        rules[name] = Rules(
            int(least.value or 1) if least else 1,
            unclean=unclean is not None and unclean.value == "true",
        )
        if least is not None and least.source is ConfigSource.TOPIC:
            own.add(name)
    sizes: dict[TopicPartition, int] = {}
    for directory in await admin.logs.directories():
        for partition, size in directory.partition_bytes.items():
            sizes[partition] = max(size, sizes.get(partition, 0))
    return ClusterCopy(
        {one.name: _image(one, racks, moving.get(one.name)) for one in standings},
        rules,
        racks,
        frozenset(own),
        sizes,
        tuple(group.group_id for group in await admin.groups.all()),
        live_controller(found),
    )


def _image(
    one: PartitionStatus, racks: Collection[int], moving: Reassignment | None
) -> PartitionImage:
    return PartitionImage(
        BrokerId(one.leader),
        one.leader_epoch,
        tuple(map(BrokerId, one.replicas)),
        tuple(map(BrokerId, one.isr)),
        elr=tuple(map(BrokerId, one.elr)),
        last_known_elr=tuple(map(BrokerId, one.last_known_elr)),
        leader_broker_epoch=_EPOCH if one.leader in racks else 0,
        adding=tuple(map(BrokerId, moving.adding)) if moving else (),
        removing=tuple(map(BrokerId, moving.removing)) if moving else (),
    )


def stop(cluster: ClusterCopy, broker_id: int) -> Prediction:
    """Predict a controlled stop of a broker. Raises BROKER_NOT_AVAILABLE if it is not alive."""
    if broker_id not in cluster.racks:
        raise OttlaError(
            ErrorCode.BROKER_NOT_AVAILABLE,
            f"broker {broker_id} is not alive; there are {sorted(cluster.racks)}",
        )
    return _predicted(cluster, [broker_id], handed_over=True)


def lose_rack(cluster: ClusterCopy, rack: str) -> Prediction:
    """Predict the death of all brokers of a rack at once. Raises INVALID_REQUEST if it has none."""
    brokers = [broker for broker, its in cluster.racks.items() if its == rack]
    if not brokers:
        known = sorted({its for its in cluster.racks.values() if its})
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"no live broker is in rack {rack!r}; "
            + (f"there are {', '.join(known)}" if known else "set broker.rack on the brokers"),
        )
    return _predicted(cluster, brokers, handed_over=False)


def change_min_isr(
    cluster: ClusterCopy, min_isr: int, topics: Collection[str] | None = None
) -> Prediction:
    """Predict another `min.insync.replicas`, of `topics` or, with None, as the brokers' default.

    The default applies to topics that do not set it themselves. Raises UNKNOWN_TOPIC_OR_PARTITION.
    """
    for name in topics or ():
        if name not in cluster.rules:
            raise OttlaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"there is no topic {name!r}; list the topics to see what exists",
            )
    concerned = cluster.rules.keys() - cluster.own if topics is None else set(topics)
    changed = {name: replace(cluster.rules[name], min_isr=min_isr) for name in concerned}
    return _compared(cluster, replace(cluster, rules={**cluster.rules, **changed}), ())


def add_brokers(cluster: ClusterCopy, count: int) -> Growth:
    """Predict what `ottla cluster balance` moves to `count` new brokers.

    If every broker has a rack, the new ones are taken to be spread over these racks.
    """
    lists = {name: one.replicas for name, one in cluster.partitions.items()}
    first = max([*cluster.racks, *(broker for of in lists.values() for broker in of)], default=0)
    added = tuple(range(first + 1, first + 1 + count))
    known = sorted({rack for rack in cluster.racks.values() if rack is not None})
    places = {
        broker: known[index % len(known)] if known else None for index, broker in enumerate(added)
    }
    moving = [name for name, one in cluster.partitions.items() if one.is_moving]
    plan = balanced(lists, {**cluster.racks, **places}, moving)
    sizes = cluster.sizes or {}
    copied_bytes = sum(
        sizes.get(name, 0) * len(set(replicas) - set(lists[name]))
        for name, replicas in plan.items()
    )
    after = {**lists, **plan}
    brokers = sorted({*cluster.racks, *added})
    return Growth(
        added,
        plan,
        copied_bytes,
        {broker: (_held(lists, broker), _held(after, broker)) for broker in brokers},
        {broker: (_led(lists, broker), _led(after, broker)) for broker in brokers},
    )


def _held(lists: Mapping[TopicPartition, Collection[int]], broker: int) -> int:
    return sum(broker in replicas for replicas in lists.values())


def _led(lists: Mapping[TopicPartition, tuple[int, ...]], broker: int) -> int:
    return sum(replicas[0] == broker for replicas in lists.values())


# -- the controller's decisions


def _without(
    cluster: ClusterCopy, brokers: Collection[int], *, handed_over: bool
) -> tuple[ClusterCopy, tuple[TopicPartition, ...]]:
    """Return the cluster after brokers have left, and partitions with an unclean election.

    Before a controlled stop, leaderships are handed over where another replica is in sync.
    """
    left = without(cluster.live, [BrokerId(broker) for broker in brokers])
    after, lossy = dict(cluster.partitions), []
    for name, one in cluster.partitions.items():
        rules = cluster.rules[name.topic]
        for broker in brokers if handed_over else ():
            one = _applied(one, move_away(one, BrokerId(broker), left, rules, cause=_CAUSE))
        change = settle(one, left, rules, cause=_CAUSE)
        after[name] = _applied(one, change)
        if change is not None and change.how is How.UNCLEAN:
            lossy.append(name)
    racks = {broker: rack for broker, rack in cluster.racks.items() if broker not in brokers}
    return replace(cluster, partitions=after, racks=racks), tuple(lossy)


def _applied(before: PartitionImage, change: Change | None) -> PartitionImage:
    return before if change is None else change.after


def _predicted(cluster: ClusterCopy, brokers: list[int], *, handed_over: bool) -> Prediction:
    after, lossy = _without(cluster, brokers, handed_over=handed_over)
    return _compared(cluster, after, lossy)


def _compared(
    before: ClusterCopy, after: ClusterCopy, lossy: tuple[TopicPartition, ...]
) -> Prediction:
    pairs = [(name, one, after.partitions[name]) for name, one in before.partitions.items()]
    leaders = tuple(
        LeaderMove(name, was.leader, now.leader)
        for name, was, now in pairs
        if was.leader != now.leader
    )
    offline = tuple(move.name for move in leaders if move.after == NO_LEADER)
    coordinators = {move.name.partition: move for move in leaders if move.name.topic == _OFFSETS}
    count = sum(name.topic == _OFFSETS for name in before.partitions)
    moved = {
        group: coordinators[index]
        for group in before.groups
        if count and (index := partition_of(group, count)) in coordinators
    }
    return Prediction(
        after,
        offline,
        tuple(
            name
            for name, _, now in pairs
            if now.leader != NO_LEADER and before.can_write(name) and not after.can_write(name)
        ),
        tuple(name for name, was, now in pairs if len(was.isr) > len(now.isr) == 1),
        lossy,
        leaders,
        tuple(group for group, move in moved.items() if move.after != NO_LEADER),
        tuple(group for group, move in moved.items() if move.after == NO_LEADER),
        {broker: _stops(after, broker) for broker in sorted(after.racks)},
    )


def _stops(cluster: ClusterCopy, broker: int) -> int:
    """Return how many partitions stop being writable if a broker stops."""
    after, _ = _without(cluster, [broker], handed_over=True)
    return sum(cluster.can_write(name) and not after.can_write(name) for name in cluster.partitions)
