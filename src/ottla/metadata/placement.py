"""Which brokers get the replicas of new partitions."""

from collections.abc import Mapping, Sequence

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId


def place(
    brokers: Sequence[BrokerId],
    factor: int,
    partitions: range,
    start: int,
    shift: int,
    racks: Mapping[BrokerId, str | None] | None = None,
) -> tuple[tuple[BrokerId, ...], ...]:
    """Replica lists of `partitions`: leaders go round from `start`, followers are spread.

    The first follower stands `shift` brokers after the leader, and the shift grows each time
    the leaders have gone round, so that the followers of one broker differ (Kafka operations,
    replica placement). Where every broker has a rack, leaders alternate between racks, and no
    rack has two replicas of a partition while another has none. Raises
    OttlaError(INVALID_REPLICATION_FACTOR).
    """
    count = len(brokers)
    if factor > count:
        raise OttlaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): The target replication factor "
            f"of {factor} cannot be reached because only {count} broker(s) are registered.",
        )
    known = {broker: rack for broker, rack in (racks or {}).items() if rack is not None}
    aware = all(broker in known for broker in brokers) and len(set(known.values())) > 1
    order = _alternating(brokers, known) if aware else list(brokers)
    placed: list[tuple[BrokerId, ...]] = []
    for index in partitions:
        first = (index + start) % count
        turn = shift + index // count
        # Everybody else, from whom the turn has come to.
        others = [
            order[(first + 1 + (turn + follower) % (count - 1)) % count]
            for follower in range(count - 1)
        ]
        if aware:
            others = _spread(order[first], others, known)
        placed.append((order[first], *others[: factor - 1]))
    return tuple(placed)


def _alternating(brokers: Sequence[BrokerId], racks: Mapping[BrokerId, str]) -> list[BrokerId]:
    """One broker of each rack, then the next of each."""
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
    """`others` so that each comes from the racks used least so far, else in their order."""
    used = dict.fromkeys((racks[broker] for broker in others), 0)
    used[racks[leader]] = 1
    waiting = list(others)
    spread: list[BrokerId] = []
    while waiting:
        broker = min(waiting, key=lambda candidate: used[racks[candidate]])
        waiting.remove(broker)
        used[racks[broker]] += 1
        spread.append(broker)
    return spread


def check_assignment(replicas: Sequence[int], brokers: Sequence[BrokerId]) -> None:
    """Refuse a manual replica list. Raises OttlaError(INVALID_REPLICA_ASSIGNMENT)."""
    if not replicas:
        complaint = "an empty replica list"
    elif len(set(replicas)) < len(replicas):
        twice = next(broker for broker in replicas if list(replicas).count(broker) > 1)
        complaint = f"the broker {twice} more than once"
    else:
        strange = [broker for broker in replicas if broker not in brokers]
        if not strange:
            return
        complaint = f"broker {strange[0]}, but no such broker is registered"
    raise OttlaError(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        f"The manual partition assignment includes {complaint}.",
    )
