"""Decides the partitions and replicas of new or growing topics. Writes nothing."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicId
from ottla.metadata.image import ClusterImage, PartitionImage, TopicImage
from ottla.metadata.topic_names import check_no_collision, check_topic_name


def place(
    brokers: Sequence[BrokerId],
    factor: int,
    partitions: range,
    start: int,
    shift: int,
    racks: Mapping[BrokerId, str | None] | None = None,
    away: Sequence[BrokerId] = (),
    *,
    apart: bool = False,
) -> tuple[tuple[BrokerId, ...], ...]:
    """Return the replica lists of `partitions`, as Kafka places them.

    Leaders are assigned round-robin from `start` on. `shift` sets the distance from the leader to
    the first follower. The distance grows each time all brokers have had a turn as leader, so that
    the partitions of one leader have different followers (Kafka operations, replica placement). If
    every broker has a rack, leaders alternate between racks, and no rack has two replicas of a
    partition while another has none.

    `brokers` are alive; the brokers `away` are registered but not alive. No `away` broker is a
    leader. It gets a replica only if too few brokers are alive, or if its rack has no replica yet,
    as in Kafka. With `apart`, no two replicas of a partition share a rack. Raises
    OttlaError(INVALID_REPLICATION_FACTOR).
    """
    count = len(brokers)
    _check_factor(factor, count, len(away))
    known = {broker: rack for broker, rack in (racks or {}).items() if rack is not None}
    if apart:
        known = own_racks({broker: known.get(broker) for broker in (*brokers, *away)})
        _check_racks(factor, sorted(set(known.values())))
    aware = all(broker in known for broker in brokers) and len(set(known.values())) > 1
    order = _alternating(brokers, known) if aware else list(brokers)
    placed: list[tuple[BrokerId, ...]] = []
    for index in partitions:
        first = (index + start) % count
        turn = shift + index // count
        # All other live brokers, starting with the next in turn.
        others = [
            order[(first + 1 + (turn + follower) % (count - 1)) % count]
            for follower in range(count - 1)
        ]
        others += _from(away, index + start)
        if aware:
            others = _spread(order[first], others, known)
        placed.append((order[first], *others[: factor - 1]))
    return tuple(placed)


def _check_factor(factor: int, alive: int, away: int) -> None:
    if alive == 0:
        complaint = "All brokers are currently fenced or in controlled shutdown."
    elif factor > alive + away:
        complaint = (
            f"The target replication factor of {factor} cannot be reached because only "
            f"{alive + away} broker(s) are registered."
        )
    else:
        return
    raise OttlaError(
        ErrorCode.INVALID_REPLICATION_FACTOR,
        f"Unable to replicate the partition {factor} time(s): {complaint}",
    )


def own_racks(racks: Mapping[BrokerId, str | None]) -> dict[BrokerId, str]:
    """Return the rack of each broker; one without a rack gets a rack of its own."""
    return {broker: f"broker {broker}" if rack is None else rack for broker, rack in racks.items()}


def _check_racks(factor: int, racks: Sequence[str]) -> None:
    if factor <= len(racks):
        return
    raise OttlaError(
        ErrorCode.INVALID_REPLICATION_FACTOR,
        f"Unable to replicate the partition {factor} time(s): no two replicas may share a machine "
        f"(`cores`), and the registered brokers are on {len(racks)}: {', '.join(racks)}. Ask for "
        f"at most {len(racks)} replica(s), or start brokers on further machines; if machines have "
        "the same host name, set broker.rack.",
    )


def shared_rack(
    replicas: Sequence[int], racks: Mapping[BrokerId, str | None], added: Collection[int]
) -> str:
    """Return why a replica list breaks the rule of `cores`; empty if it keeps it.

    Only the brokers in `added` may break it: older replicas may share a rack already.
    """
    known = own_racks(racks)
    for broker in (BrokerId(each) for each in added if each in known):
        for other in (BrokerId(each) for each in replicas if each in known and each != broker):
            if known[broker] == known[other]:
                return (
                    f"brokers {other} and {broker} are both on {known[broker]}, and no two replicas"
                    " may share a machine (`cores`); name brokers of different machines"
                )
    return ""


def _from(brokers: Sequence[BrokerId], start: int) -> list[BrokerId]:
    """Return `brokers` rotated by `start`."""
    if not brokers:
        return []
    first = start % len(brokers)
    return [*brokers[first:], *brokers[:first]]


def _alternating(brokers: Sequence[BrokerId], racks: Mapping[BrokerId, str]) -> list[BrokerId]:
    """Order brokers so that their racks alternate."""
    of_rack: dict[str, list[BrokerId]] = {}
    for broker in brokers:
        of_rack.setdefault(racks[broker], []).append(broker)
    longest = max(len(members) for members in of_rack.values())
    return [
        of_rack[rack][place]
        for place in range(longest)
        for rack in sorted(of_rack)
        if place < len(of_rack[rack])
    ]


def _spread(
    leader: BrokerId, others: Sequence[BrokerId], racks: Mapping[BrokerId, str]
) -> list[BrokerId]:
    """Order `others` so that each is in one of the racks used least so far.

    Brokers whose rack is not known come last.
    """
    unknown = [broker for broker in others if broker not in racks]
    others = [broker for broker in others if broker in racks]
    used = dict.fromkeys((racks[broker] for broker in others), 0)
    used[racks[leader]] = 1
    waiting = list(others)
    spread: list[BrokerId] = []
    while waiting:
        broker = min(waiting, key=lambda candidate: used[racks[candidate]])
        waiting.remove(broker)
        used[racks[broker]] += 1
        spread.append(broker)
    return spread + unknown


def check_assignment(
    partition: int,
    replicas: Sequence[int],
    alive: Collection[BrokerId],
    away: Collection[BrokerId] = (),
) -> None:
    """Check a manual replica list: its brokers are registered, and at least one is alive.

    Raises OttlaError(INVALID_REPLICA_ASSIGNMENT).
    """
    strange = [broker for broker in replicas if broker not in alive and broker not in away]
    if not replicas:
        complaint = "includes an empty replica list"
    elif len(set(replicas)) < len(replicas):
        twice = next(broker for broker in replicas if list(replicas).count(broker) > 1)
        complaint = f"includes the broker {twice} more than once"
    elif strange:
        complaint = f"includes broker {strange[0]}, but no such broker is registered"
    elif not any(broker in alive for broker in replicas):
        raise OttlaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "All brokers specified in the manual partition assignment for partition "
            f"{partition} are fenced or in controlled shutdown.",
        )
    else:
        return
    raise OttlaError(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment {complaint}."
    )


# As in Kafka: a limit per request, so that a mistyped number does not stop the cluster.
PARTITIONS_PER_REQUEST_MAX = 10_000

# Stands for the broker's default number of partitions or replicas.
BY_DEFAULT = -1

# Brokers that ever registered, alive or not, with their racks. The live ones are in the image.
Registered = Mapping[BrokerId, str | None]
_NONE_REGISTERED: Registered = {}


@dataclass(frozen=True, slots=True)
class RequestedTopic:
    """A topic to create. `assignments` are replica lists by partition; if None, `place` decides."""

    name: str
    partitions: int = BY_DEFAULT
    replication_factor: int = BY_DEFAULT
    assignments: Mapping[int, Sequence[int]] | None = None
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicDefaults:
    """The broker's settings num.partitions and default.replication.factor."""

    partitions: int
    replication_factor: int


def plan_topic(
    new: RequestedTopic,
    topic_id: TopicId,
    image: ClusterImage,
    defaults: TopicDefaults,
    start: int,
    registered: Registered = _NONE_REGISTERED,
    *,
    apart: bool = False,
) -> TopicImage:
    """Plan the topic to create. Its settings must have been checked by the caller.

    `start` is any number; it spreads leaders over brokers. `registered` brokers that are dead get
    replicas outside the ISR if too few are alive, or if `new` assigns them. With `apart`, no two
    replicas of a partition share a rack. Raises OttlaError
    with Kafka's code and words (INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS,
    INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT, INVALID_REQUEST).
    """
    check_topic_name(new.name)
    if new.name in image.topics:
        raise OttlaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{new.name}' already exists.")
    check_no_collision(new.name, image.topics)
    spread = _Spread(image, registered, start, apart=apart)
    replicas = _manual(new, spread) if new.assignments else _automatic(new, defaults, spread)
    partitions = tuple(_new_partition(assigned, image) for assigned in replicas)
    return TopicImage(new.name, topic_id, partitions, dict(new.configs))


def plan_growth(
    topic: TopicImage,
    count: int,
    assignments: Sequence[Sequence[int]] | None,
    image: ClusterImage,
    start: int,
    registered: Registered = _NONE_REGISTERED,
    *,
    apart: bool = False,
) -> TopicImage:
    """Plan the growth of a topic to `count` partitions.

    `assignments` are the replica lists of the new partitions; if None, `place` decides. With
    `apart`, no two replicas of a new partition share a rack.

    Raises OttlaError(INVALID_PARTITIONS, INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR).
    """
    before = len(topic.partitions)
    if count == before:
        raise OttlaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {before} partition(s).")
    if count < before:
        raise OttlaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {before} partition(s); {count} would not be an "
            "increase. Partitions cannot be taken away.",
        )
    check_partition_count(count - before)
    spread = _Spread(image, registered, start, apart=apart)
    if assignments is None:
        added = spread.over(topic.replication_factor, range(before, count))
    else:
        added = _checked_growth(topic, count - before, assignments, spread)
    partitions = tuple(_new_partition(assigned, image) for assigned in added)
    return replace(topic, partitions=topic.partitions + partitions)


def check_partition_count(count: int) -> None:
    """Refuse more new partitions than one request may create."""
    if count > PARTITIONS_PER_REQUEST_MAX:
        raise OttlaError(
            ErrorCode.POLICY_VIOLATION,
            f"Excessively large number of partitions per request: {count}; at most "
            f"{PARTITIONS_PER_REQUEST_MAX} can be made at once.",
        )


class _Spread:
    """The brokers available for replicas: live ones, and known ones that are not alive."""

    def __init__(
        self, image: ClusterImage, registered: Registered, start: int, *, apart: bool
    ) -> None:
        self._alive = sorted(image.brokers)
        self._away = sorted(broker for broker in registered if broker not in image.brokers)
        self._racks = {**registered, **{b.id: b.rack for b in image.brokers.values()}}
        self._start = start
        self._apart = apart

    def over(self, factor: int, partitions: range) -> tuple[tuple[BrokerId, ...], ...]:
        """Place the replicas. Raises OttlaError(INVALID_REPLICATION_FACTOR)."""
        start = self._start
        brokers, away = self._alive, self._away
        return place(
            brokers, factor, partitions, start, start, self._racks, away, apart=self._apart
        )

    def check(self, partition: int, replicas: Sequence[int]) -> None:
        """Check given replicas. Raises OttlaError(INVALID_REPLICA_ASSIGNMENT)."""
        check_assignment(partition, replicas, self._alive, self._away)
        complaint = shared_rack(replicas, self._racks, replicas) if self._apart else ""
        if complaint:
            raise OttlaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment of partition {partition}: {complaint}.",
            )


def _checked_growth(
    topic: TopicImage, added: int, assignments: Sequence[Sequence[int]], spread: _Spread
) -> tuple[tuple[BrokerId, ...], ...]:
    if len(assignments) != added:
        raise OttlaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {added} additional partition(s), but only {len(assignments)} "
            "assignment(s) were specified.",
        )
    for index, replicas in enumerate(assignments, start=len(topic.partitions)):
        spread.check(index, replicas)
        if len(replicas) != topic.replication_factor:
            raise OttlaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes a partition with {len(replicas)} "
                f"replica(s), but the topic has {topic.replication_factor}.",
            )
    return tuple(tuple(BrokerId(broker) for broker in replicas) for replicas in assignments)


def _manual(new: RequestedTopic, spread: _Spread) -> tuple[tuple[BrokerId, ...], ...]:
    assert new.assignments is not None
    if new.replication_factor != BY_DEFAULT:
        raise _request("replication factor")
    if new.partitions != BY_DEFAULT:
        raise _request("number of partitions")
    count = len(new.assignments)
    if sorted(new.assignments) != list(range(count)):
        raise OttlaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment should number its partitions 0, 1, 2 … without gaps.",
        )
    factor = len(new.assignments[0])
    for index in range(count):
        spread.check(index, new.assignments[index])
        if len(new.assignments[index]) != factor:
            raise OttlaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment gives partition {index} "
                f"{len(new.assignments[index])} replica(s), but partition 0 {factor}.",
            )
    return tuple(
        tuple(BrokerId(broker) for broker in new.assignments[index]) for index in range(count)
    )


def _automatic(
    new: RequestedTopic, defaults: TopicDefaults, spread: _Spread
) -> tuple[tuple[BrokerId, ...], ...]:
    if new.partitions == 0 or new.partitions < BY_DEFAULT:
        raise OttlaError(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    if new.replication_factor == 0 or new.replication_factor < BY_DEFAULT:
        raise OttlaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    by_default = new.partitions == BY_DEFAULT
    count = defaults.partitions if by_default else new.partitions
    check_partition_count(count)
    by_default = new.replication_factor == BY_DEFAULT
    factor = defaults.replication_factor if by_default else new.replication_factor
    return spread.over(factor, range(count))


def _new_partition(replicas: tuple[BrokerId, ...], image: ClusterImage) -> PartitionImage:
    alive = tuple(broker for broker in replicas if broker in image.brokers)
    return PartitionImage(
        leader=alive[0],
        leader_epoch=0,
        replicas=replicas,
        isr=alive,
        leader_broker_epoch=image.brokers[alive[0]].epoch,
    )


def _request(what: str) -> OttlaError:
    return OttlaError(
        ErrorCode.INVALID_REQUEST,
        f"A manual partition assignment was specified, but {what} was not set to -1.",
    )
