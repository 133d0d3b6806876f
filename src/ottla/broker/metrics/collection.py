"""Turns the statuses of a broker's parts into samples.

Thousands of partitions and groups are taken in slices, so that the event loop serves requests in
between. What a counter must remember when its part forgets it (a partition that has moved away) is
kept here.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final, TypeVar

from ottla import __version__
from ottla.base.clock import Clock
from ottla.broker.metrics import catalog
from ottla.broker.metrics.catalog import Of, Reads
from ottla.broker.metrics.samples import NO_LABELS, Family, Labels, Metric
from ottla.broker.partitions.replica_status import ReplicaStatus
from ottla.broker.runtime.part import BrokerPart

# Partitions or readers that are taken in one turn of the loop: about a millisecond.
_SLICE: Final = 100
# Samples younger than this are given to the next reader, too.
_FRESH_MS: Final = 1_000
# The forecast of a full disk is a line through an hour of measurements, at most one in 30 s.
_MEASURED_MS: Final = 30_000
_MEASUREMENTS: Final = 120

T = TypeVar("T")
# The values of a metric, and the function that finds the next one.
_Column = tuple[list[float], Callable[[Any], float]]


class Collection:
    """The samples of one broker. `worked_s` is the processor time of the loop's thread."""

    def __init__(
        self,
        broker_id: int,
        parts: Callable[[], Mapping[str, BrokerPart]],
        refresh: Callable[[], Awaitable[None]],
        clock: Clock,
        worked_s: Callable[[], float],
    ) -> None:
        self._broker_id = broker_id
        self._parts = parts
        self._refresh = refresh
        self._clock = clock
        self._worked_s = worked_s
        self._lock = asyncio.Lock()
        self._families: dict[Metric, Family] = {}
        # The labels of the last collection, which most partitions and readers have again.
        self._partition_labels: dict[tuple[str, int], tuple[Labels, Labels]] = {}
        self._reader_labels: dict[tuple[str, tuple[str, int]], tuple[Labels, ...]] = {}
        # For each topic the sums of `catalog.TOPIC`, and the counts of each replica in them.
        self._topics: dict[str, list[int]] = {}
        self._counted: dict[tuple[str, int], tuple[int, ...]] = {}
        # The last stable offset of partitions where it is behind, and since when it is there.
        self._unstable: dict[tuple[str, int], tuple[int, int]] = {}
        self._disks: dict[str, deque[tuple[int, int]]] = {}
        self._busy = (clock.monotonic_ms(), worked_s())
        self._at_ms = -_FRESH_MS
        # How many times samples were collected, and how long that took.
        self.collections = 0
        self.worked_total_s = 0.0

    async def collect(self) -> list[Family]:
        """Return all samples, at most a second old."""
        async with self._lock:
            if self._clock.monotonic_ms() - self._at_ms >= _FRESH_MS or not self._families:
                await self._refresh()
                began_s = self._worked_s()
                await self._collect()
                self.worked_total_s += self._worked_s() - began_s
                self.collections += 1
                self._at_ms = self._clock.monotonic_ms()
            return list(self._families.values())

    async def _collect(self) -> None:
        self._families = {}
        statuses = SimpleNamespace()
        for name, part in self._parts().items():
            setattr(statuses, name, part.status())
            await asyncio.sleep(0)
        self._broker(statuses)
        self._disk(statuses)
        await self._replicas(statuses)
        await self._groups(statuses)

    def _add(self, metric: Metric, value: float, *labels: object) -> None:
        family = self._families.get(metric)
        if family is None:
            family = self._families[metric] = Family(metric)
        family.labels.append(Labels(metric.labels, labels) if labels else NO_LABELS)
        family.values.append(value)

    def _columns(self, entries: Iterable[Of], labels: list[Labels]) -> list[_Column]:
        """Begin families that share `labels`."""
        columns = []
        for metric, value in entries:
            family = self._families[metric] = Family(metric, labels)
            columns.append((family.values, value))
        return columns

    # -- the broker and the cluster

    def _broker(self, s: Any) -> None:
        self._add(catalog.INFO, 1, self._broker_id, s.cluster.cluster_id, __version__)
        for entry in (*catalog.JMX_BROKER, *catalog.OWN_BROKER):
            self._add(entry.metric, entry.value(s))
        idle = self._idle_share()
        for metric in catalog.IDLE:
            self._add(metric, idle)
        for listener, count in s.serving.connections.items():
            self._add(catalog.CONNECTIONS, count, listener)
        for metric, count in zip(catalog.DISK_IO, _disk_io(), strict=True):
            self._add(metric, count)
        self._add(catalog.BUSY, self._worked_s())
        self._add(catalog.COLLECTION, self.worked_total_s)
        if s.controller.is_active:
            self._add(catalog.EXPORTER_BROKERS, s.cluster.brokers)
            for broker_id, address in s.cluster.addresses.items():
                self._add(catalog.EXPORTER_BROKER, 1, broker_id, address)
            for topic, count in s.metadata.partition_counts.items():
                self._add(catalog.EXPORTER_TOPIC, count, topic)

    def _idle_share(self) -> float:
        """Return the share of the time since the last collection that the loop did not work."""
        now_ms, worked_s = self._clock.monotonic_ms(), self._worked_s()
        since_ms, before_s = self._busy
        self._busy = now_ms, worked_s
        elapsed_s = (now_ms - since_ms) / 1000
        return max(0.0, 1 - (worked_s - before_s) / elapsed_s) if elapsed_s > 0 else 1.0

    def _disk(self, s: Any) -> None:
        now_ms = self._clock.monotonic_ms()
        known, self._disks = self._disks, {}
        for disk in s.storage.directories:
            for entry in catalog.DISK:
                self._add(entry.metric, entry.value(disk), disk.path)
            points = known.get(disk.path, deque(maxlen=_MEASUREMENTS))
            self._disks[disk.path] = points
            if not points or now_ms - points[-1][0] >= _MEASURED_MS:
                points.append((now_ms, disk.free_bytes))
            since_ms, before = points[0]
            used = before - disk.free_bytes
            if used > 0 and now_ms - since_ms >= _MEASURED_MS:
                left = max(0, disk.free_bytes - disk.reserve_bytes)
                self._add(catalog.DISK_FULL, left * (now_ms - since_ms) / used / 1000, disk.path)

    # -- partitions

    async def _replicas(self, s: Any) -> None:
        here: list[Labels] = []
        led: list[Labels] = []
        led_of_cluster: list[Labels] = []
        of_replica = self._columns(catalog.REPLICA, here)
        of_leader = self._columns((*catalog.JMX_PARTITION, *catalog.EXPORTER_PARTITION), led)
        of_leader += self._columns(catalog.KLAG_PARTITION, led_of_cluster)
        counted, unstable, labels = self._counted, self._unstable, self._partition_labels
        self._counted, self._unstable, self._partition_labels = {}, {}, {}
        cluster, now_ms = s.cluster.cluster_id, self._clock.monotonic_ms()
        for some in _slices(s.replication.replicas):
            for replica in some:
                name = replica[:2]
                known = labels.get(name) or _of_partition(cluster, *name)
                self._partition_labels[name] = known
                here.append(known[0])
                self._count(name, replica, counted.get(name))
                if replica.is_leader:
                    led.append(known[0])
                    led_of_cluster.append(known[1])
                    if replica.last_stable_offset < replica.high_watermark:
                        self._note_unstable(name, replica.last_stable_offset, unstable, now_ms)
            _fill(of_replica, some)
            _fill(of_leader, [each for each in some if each.is_leader])
            await asyncio.sleep(0)
        self._topics = {t: n for t, n in self._topics.items() if t in s.metadata.partition_counts}
        at = [Labels(catalog.TOPIC[0].labels, (topic,)) for topic in self._topics]
        for number, metric in enumerate(catalog.TOPIC):
            sums: list[float] = [counts[number] for counts in self._topics.values()]
            self._families[metric] = Family(metric, at, sums)

    def _count(
        self, name: tuple[str, int], replica: ReplicaStatus, before: tuple[int, ...] | None
    ) -> None:
        """Add what a replica has counted since the last collection to its topic's sums."""
        counts = self._counted[name] = catalog.topic_counts(replica)
        if counts == before:
            return
        sums = self._topics.setdefault(name[0], [0] * len(counts))
        for number, count in enumerate(counts):
            earlier = before[number] if before is not None else 0
            # A replica that was made anew counts from 0.
            sums[number] += count - earlier if count >= earlier else count

    def _note_unstable(
        self,
        name: tuple[str, int],
        offset: int,
        before: Mapping[tuple[str, int], tuple[int, int]],
        now_ms: int,
    ) -> None:
        was, since_ms = before.get(name, (offset, now_ms))
        if was != offset:
            since_ms = now_ms
        self._unstable[name] = offset, since_ms
        self._add(catalog.LSO_AGE, (now_ms - since_ms) / 1000, *name)

    # -- groups

    async def _groups(self, s: Any) -> None:
        cluster, at_ms = s.cluster.cluster_id, s.lags.at_ms
        self._add(catalog.KLAG_UP, int(at_ms > 0))
        self._add(catalog.KLAG_AT, at_ms / 1000, cluster)
        plain: list[Labels] = []
        of_cluster: list[Labels] = []
        columns = self._columns(catalog.EXPORTER_READER, plain)
        columns += self._columns(catalog.KLAG_READER, of_cluster)
        losses = self._families[catalog.LOSS] = Family(catalog.LOSS)
        labels, self._reader_labels = self._reader_labels, {}
        lost = taken = 0
        for group in s.lags.groups:
            name = group.group_id
            self._add(catalog.EXPORTER_MEMBERS, group.members, name)
            self._add(catalog.KLAG_STATE, catalog.GROUP_STATES.get(group.state, 0), cluster, name)
            reads = [catalog.reads_of(one, one.place, at_ms) for one in group.readers if one.place]
            for each in reads:
                key = name, each.one.name
                known = labels.get(key) or _of_reader(cluster, name, *each.one.name)
                self._reader_labels[key] = known
                plain.append(known[0])
                of_cluster.append(known[1])
                if each.place.left_ms >= 0:
                    losses.labels.append(known[2])
                    losses.values.append(each.place.left_ms / 1000)
            if reads:
                _fill(columns, reads)
                self._sums(name, cluster, reads)
            lost += sum(each.place.log_start_offset > each.one.committed for each in reads)
            taken += len(reads) + 1
            if taken >= _SLICE:
                taken = 0
                await asyncio.sleep(0)
        self._add(catalog.KLAG_LOSSES, lost, cluster)

    def _sums(self, name: str, cluster: str, reads: Sequence[Reads]) -> None:
        topics: dict[str, tuple[int, int]] = {}
        for each in reads:
            topic = each.one.name.topic
            offset, lag = topics.get(topic, (0, 0))
            topics[topic] = offset + each.one.committed, lag + each.lag
        for topic, sums in topics.items():
            for metric, total in zip(catalog.EXPORTER_GROUP_TOPIC, sums, strict=True):
                self._add(metric, total, name, topic)
            self._add(catalog.KLAG_GROUP_TOPIC, sums[1], cluster, name, topic)
        lags = [each.lag for each in reads]
        of_group = max(lags), max(each.lag_seconds for each in reads), sum(lags)
        for metric, figure in zip(catalog.KLAG_GROUP, of_group, strict=True):
            self._add(metric, figure, cluster, name)
        last_ms = max(each.one.committed_at_ms for each in reads)
        self._add(catalog.LAST_COMMIT, last_ms / 1000, name)


def _slices(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[first : first + _SLICE] for first in range(0, len(items), _SLICE))


def _fill(columns: Iterable[_Column], things: Sequence[object]) -> None:
    for values, value in columns:
        values += [value(each) for each in things]


def _of_partition(cluster: str, topic: str, partition: int) -> tuple[Labels, Labels]:
    klag = catalog.KLAG_PARTITION[0].metric.labels
    return (
        Labels(catalog.REPLICA[0].metric.labels, (topic, partition)),
        Labels(klag, (cluster, topic, partition)),
    )


def _of_reader(cluster: str, group: str, topic: str, partition: int) -> tuple[Labels, ...]:
    place = group, topic, partition
    return (
        Labels(catalog.EXPORTER_READER[0].metric.labels, place),
        Labels(catalog.KLAG_READER[0].metric.labels, (cluster, *place)),
        Labels(catalog.LOSS.labels, place),
    )


def _disk_io() -> tuple[int, int]:
    """Return the bytes that this process had read from and written to disks; 0 if unknown."""
    try:
        with open("/proc/self/io", encoding="ascii") as file:
            counts = dict(line.split(": ") for line in file.read().splitlines())
    except OSError:
        return 0, 0
    return int(counts["read_bytes"]), int(counts["write_bytes"])
