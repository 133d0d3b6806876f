"""Assigns brokers to the replicas of new partitions."""

from collections.abc import Collection, Mapping, Sequence

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId


def place(
    brokers: Sequence[BrokerId],
    factor: int,
    partitions: range,
    start: int,
    shift: int,
    racks: Mapping[BrokerId, str | None] | None = None,
    away: Sequence[BrokerId] = (),
) -> tuple[tuple[BrokerId, ...], ...]:
    """The replica lists of `partitions`: leaders go round from `start`, followers are spread.

    The first follower stands `shift` brokers after the leader, and the shift grows each time
    the leaders have gone round, so that the followers of one broker differ (Kafka operations,
    replica placement). Where every broker has a rack, leaders alternate between racks, and no
    rack has two replicas of a partition while another has none.

    `brokers` are alive. The brokers `away` are known and not alive: none of them comes first, and
    they get a replica only if too few others are alive, or if their rack has none yet, as in
    Kafka. Raises OttlaError(INVALID_REPLICATION_FACTOR).
    """
    count = len(brokers)
    _check_factor(factor, count, len(away))
    known = {broker: rack for broker, rack in (racks or {}).items() if rack is not None}
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


def _from(brokers: Sequence[BrokerId], start: int) -> list[BrokerId]:
    """All of `brokers` once, with another first one for each `start`."""
    if not brokers:
        return []
    first = start % len(brokers)
    return [*brokers[first:], *brokers[:first]]


def _alternating(brokers: Sequence[BrokerId], racks: Mapping[BrokerId, str]) -> list[BrokerId]:
    """One broker of each rack in turn."""
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
