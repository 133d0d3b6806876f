"""The state of partitions, and the bounds of their logs."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.client.admin.partitions import PartitionStanding
from ottla.client.connection.view import NO_LEADER, PartitionView, TopicView
from ottla.client.consumer.offsets import EARLIEST, LATEST


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """A partition and the bounds of its log; offsets are None if it has no leader."""

    view: PartitionView
    start_offset: int | None
    end_offset: int | None

    @property
    def leader(self) -> int | None:
        return None if self.view.leader == NO_LEADER else self.view.leader

    @property
    def offset_count(self) -> int:
        """The number of offsets in use; 0 if unknown."""
        return (self.end_offset or 0) - (self.start_offset or 0)


async def standings_of(admin: Admin, names: Sequence[TopicPartition]) -> list[PartitionStanding]:
    """The state of the partitions `names`, in their order. Raises UNKNOWN_TOPIC_OR_PARTITION."""
    found = await admin.partitions.standings(sorted({name.topic for name in names}))
    known = {one.name: one for one in found}
    for name in names:
        if name not in known:
            raise _unknown(name, known)
    return [known[name] for name in names]


async def offsets_of(admin: Admin, view: TopicView) -> list[PartitionOffsets]:
    """The start and end of the logs of a topic's partitions, from their leaders."""
    led = [
        TopicPartition(view.name, entry.index)
        for entry in view.partitions
        if entry.leader != NO_LEADER
    ]
    starts = await admin.logs.offsets(dict.fromkeys(led, EARLIEST))
    ends = await admin.logs.offsets(dict.fromkeys(led, LATEST))
    found: list[PartitionOffsets] = []
    for entry in view.partitions:
        name = TopicPartition(view.name, entry.index)
        found.append(
            PartitionOffsets(
                entry,
                starts[name].offset if name in starts else None,
                ends[name].offset if name in ends else None,
            )
        )
    return found


def _unknown(name: TopicPartition, known: Iterable[TopicPartition]) -> OttlaError:
    count = sum(other.topic == name.topic for other in known)
    return OttlaError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        f"topic {name.topic!r} has partitions 0 to {count - 1}, not {name.partition}; see "
        f"`ottla topic describe {name.topic}`",
    )


def brokers_down(views: Iterable[TopicView], live: Collection[int]) -> tuple[int, ...]:
    """Brokers with replicas of these topics that are not among `live`, by id."""
    replicas = {broker for view in views for entry in view.partitions for broker in entry.replicas}
    return tuple(sorted(replicas.difference(live)))


def fewest_alive(view: TopicView, live: Collection[int]) -> int:
    """The number of live replicas of the partition that has fewest."""
    return min(sum(broker in live for broker in entry.replicas) for entry in view.partitions)
