"""The state of partitions: replicas, log start and end offsets, and sizes on disk."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.client.admin.partitions import PartitionStatus
from ottla.client.connection.cluster import Cluster, connections_of
from ottla.client.connection.view import NO_LEADER, PartitionDescription, TopicDescription
from ottla.client.consumer.offsets import EARLIEST, LATEST, list_offsets


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """A partition with its log's start and end offset; both are None if it has no leader."""

    view: PartitionDescription
    start_offset: int | None
    end_offset: int | None

    @property
    def leader(self) -> int | None:
        return None if self.view.leader == NO_LEADER else self.view.leader

    @property
    def offset_count(self) -> int:
        """Return the number of offsets from start to end; 0 if unknown."""
        return (self.end_offset or 0) - (self.start_offset or 0)


async def standings_of(admin: Admin, names: Sequence[TopicPartition]) -> list[PartitionStatus]:
    """Return the state of `names`, in their order. Raises UNKNOWN_TOPIC_OR_PARTITION."""
    found = await admin.partitions.describe(sorted({name.topic for name in names}))
    known = {one.name: one for one in found}
    for name in names:
        if name not in known:
            raise _unknown(name, known)
    return [known[name] for name in names]


async def offsets_of(admin: Admin, view: TopicDescription) -> list[PartitionOffsets]:
    """Return the log start and end offsets of a topic's partitions, from their leaders."""
    led = [
        TopicPartition(view.name, entry.partition)
        for entry in view.partitions
        if entry.leader != NO_LEADER
    ]
    starts = await admin.logs.offsets(dict.fromkeys(led, EARLIEST))
    ends = await admin.logs.offsets(dict.fromkeys(led, LATEST))
    found: list[PartitionOffsets] = []
    for entry in view.partitions:
        name = TopicPartition(view.name, entry.partition)
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


def brokers_down(views: Iterable[TopicDescription], live: Collection[int]) -> tuple[int, ...]:
    """Return brokers that have replicas of these topics but are not in `live`, by id."""
    replicas = {broker for view in views for entry in view.partitions for broker in entry.replicas}
    return tuple(sorted(replicas.difference(live)))


def fewest_alive(view: TopicDescription, live: Collection[int]) -> int:
    """Return the number of live replicas of the partition that has the fewest."""
    return min(sum(broker in live for broker in entry.replicas) for entry in view.partitions)


Offsets = dict[TopicPartition, int]


async def partitions_of(
    cluster: Cluster, topic: str, chosen: Iterable[int] = ()
) -> list[TopicPartition]:
    """Return the partitions `chosen` of the topic, or all partitions.

    Raises UnknownTopic, and UNKNOWN_TOPIC_OR_PARTITION for a number the topic does not have.
    """
    view = await cluster.topic(topic)
    count = len(view.partitions)
    wanted = sorted(set(chosen)) or range(count)
    for index in wanted:
        if index >= count:
            raise OttlaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {topic!r} has partitions 0 to {count - 1}, not {index}",
            )
    return [TopicPartition(topic, index) for index in wanted]


async def offsets_at(cluster: Cluster, partitions: Iterable[TopicPartition], at: int) -> Offsets:
    """Return offsets for EARLIEST, LATEST or a time in ms; -1 if all records are older."""
    found = await list_offsets(cluster, dict.fromkeys(partitions, at))
    return {partition: entry.offset for partition, entry in found.items()}


async def offsets_in_time(
    cluster: Cluster, partitions: Iterable[TopicPartition], at: int, patience_s: float
) -> tuple[Offsets, dict[TopicPartition, OttlaError]]:
    """Like `offsets_at`, but each leader has at most `patience_s` to answer.

    All leaders are asked at once. Returns the offsets that came, and an error for each other
    partition. Raises UnknownTopic.
    """
    by_leader: dict[int, list[TopicPartition]] = {}
    for name in partitions:
        leader = (await cluster.partition(name)).leader
        by_leader.setdefault(leader, []).append(name)
    found: Offsets = {}
    failed: dict[TopicPartition, OttlaError] = {}

    async def ask(leader: int, names: list[TopicPartition]) -> None:
        try:
            async with asyncio.timeout(patience_s):
                found.update(await offsets_at(cluster, names, at))
        except TimeoutError:
            error = no_answer(leader, patience_s)
            failed.update(dict.fromkeys(names, error))
        except OttlaError as error:
            failed.update(dict.fromkeys(names, error))

    await asyncio.gather(*(ask(leader, names) for leader, names in by_leader.items()))
    return found, failed


def no_answer(broker_id: int, patience_s: float) -> OttlaError:
    """Return the error for a broker that did not answer in time (NO_LEADER: there is none)."""
    if broker_id == NO_LEADER:
        return OttlaError(
            ErrorCode.LEADER_NOT_AVAILABLE,
            "the partition has no leader; `ottla cluster health` says why",
        )
    return OttlaError(
        ErrorCode.REQUEST_TIMED_OUT,
        f"broker {broker_id} did not answer within {patience_s:g} s; it stands still, or the "
        "network to it does",
    )


async def known_offsets(admin: Admin, places: Iterable[TopicPartition], at: int) -> Offsets:
    """Like `offsets_at`, but leave out partitions that do not exist or have no leader."""
    views = {view.name: view for view in await admin.topics.all(internal=True)}
    there = [
        place
        for place in places
        if place.topic in views
        and place.partition < len(views[place.topic].partitions)
        and views[place.topic].partitions[place.partition].leader != NO_LEADER
    ]
    return await offsets_at(connections_of(admin), there, at) if there else {}


@dataclass(frozen=True, slots=True)
class TopicSize:
    """The bytes of a topic's logs: of the leaders only, and of all replicas."""

    name: str
    partition_count: int
    leader_bytes: int
    replica_bytes: int


async def topic_sizes(admin: Admin, names: Sequence[str] | None) -> list[TopicSize]:
    """Return the sizes of the topics `names` (None: of all topics), the largest first.

    Replicas on brokers that are down are not counted. Raises UnknownTopic.
    """
    views = (
        await admin.topics.all(internal=True)
        if names is None
        else await admin.topics.describe_all(names)
    )
    leaders = {(v.name, entry.partition): entry.leader for v in views for entry in v.partitions}
    led, held = dict.fromkeys((v.name for v in views), 0), dict.fromkeys((v.name for v in views), 0)
    for folder in await admin.logs.directories():
        for place, size in folder.partition_bytes.items():
            if place.topic in held:
                held[place.topic] += size
                is_leader = leaders.get((place.topic, place.partition)) == folder.broker_id
                led[place.topic] += size if is_leader else 0
    found = [TopicSize(v.name, len(v.partitions), led[v.name], held[v.name]) for v in views]
    return sorted(found, key=lambda one: (-one.replica_bytes, one.name))
