"""Chooses the partition of a record that is sent without one."""

from collections.abc import Callable, Sequence
from random import Random

from ottla.base.errors import ErrorCode
from ottla.base.murmur2 import partition_of
from ottla.client.common.errors import ClientError

# (topic, key, value, number of partitions) -> partition
Partitioner = Callable[[str, bytes | None, bytes | None, int], int]


class RoundRobin:
    """Sends each record to the next partition, whatever its key."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def __call__(
        self, topic: str, key: bytes | None, value: bytes | None, partition_count: int
    ) -> int:
        del key, value
        number = self._next.get(topic, 0)
        self._next[topic] = number + 1
        return number % partition_count


class Uniform:
    """Sends records with keys by murmur2, and each record without a key to a random partition."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def __call__(
        self, topic: str, key: bytes | None, value: bytes | None, partition_count: int
    ) -> int:
        del topic, value
        if key is None:
            return self._chance.randrange(partition_count)
        return partition_of(key, partition_count)


def partitioner_named(name: str | Partitioner, chance: Random) -> Partitioner | None:
    """Return the named partitioner; None is the default: murmur2 for keys, else sticky (KIP-794).

    Names: `default`, `round_robin`, `uniform`. A callable is returned unchanged.
    """
    if callable(name):
        return name
    if name == "default":
        return None
    if name == "round_robin":
        return RoundRobin()
    return Uniform(chance)


def checked(partition: int, partition_count: int, topic: str) -> int:
    """Return `partition` if the topic has it; otherwise raise ClientError."""
    if 0 <= partition < partition_count:
        return partition
    raise ClientError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        f"topic {topic!r} has partitions 0 to {partition_count - 1}, not {partition}",
    )


def next_sticky(current: int, available: Sequence[int], chance: Random) -> int:
    """Return another random partition that has a leader; `current` if there is no other."""
    others = [partition for partition in available if partition != current]
    return chance.choice(others) if others else current
