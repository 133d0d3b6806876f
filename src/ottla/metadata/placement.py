"""Which brokers get the replicas of new partitions."""

from collections.abc import Sequence

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId


def place(
    brokers: Sequence[BrokerId], factor: int, partitions: range, start: int, shift: int
) -> tuple[tuple[BrokerId, ...], ...]:
    """Replica lists of `partitions`: leaders go round from `start`, followers are spread.

    The first follower stands `shift` brokers after the leader, and the shift grows each time
    the leaders have gone round, so that the followers of one broker differ (Kafka operations,
    replica placement). Raises OttlaError(INVALID_REPLICATION_FACTOR).
    """
    count = len(brokers)
    if factor > count:
        raise OttlaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): The target replication factor "
            f"of {factor} cannot be reached because only {count} broker(s) are registered.",
        )
    placed: list[tuple[BrokerId, ...]] = []
    for index in partitions:
        first = (index + start) % count
        turn = shift + index // count
        followers = (
            brokers[(first + 1 + (turn + follower) % (count - 1)) % count]
            for follower in range(factor - 1)
        )
        placed.append((brokers[first], *followers))
    return tuple(placed)


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
