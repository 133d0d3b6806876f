"""Reads the records of a topic piece by piece, in bounded memory and time.

A `RecordReader` goes onward from given offsets, or backward from them: the newest records first.
It keeps what its caller's function `keep` makes of each record, and no more than a page of that;
its answer says where to continue, so that a search through a large log goes on with the next call.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.client import Consumer
from ottla.client.connection.cluster import Cluster
from ottla.client.consumer.offsets import EARLIEST, LATEST
from ottla.diagnosis.partitions import Offsets, offsets_at, offsets_in_time
from ottla.diagnosis.record_choice import Position
from ottla.record.codec import Record

Kept = TypeVar("Kept")

_POLL_RECORDS = 500
_POLL_S = 0.2


async def resolved(
    cluster: Cluster, partitions: Iterable[TopicPartition], position: Position
) -> Offsets:
    """Return the offset of `position` in each partition, limited to the log's bounds."""
    partitions = list(partitions)
    starts = await offsets_at(cluster, partitions, EARLIEST)
    if position.kind == "earliest":
        return starts
    ends = await offsets_at(cluster, partitions, LATEST)
    if position.kind == "latest":
        return ends
    if position.kind == "time":
        found = await offsets_at(cluster, partitions, position.number)
        return {place: offset if offset >= 0 else ends[place] for place, offset in found.items()}
    if position.kind == "last":
        return {place: max(starts[place], ends[place] - position.number) for place in partitions}
    return {place: min(max(starts[place], position.number), ends[place]) for place in partitions}


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """How much one call may read: records to keep, bytes and seconds to spend."""

    records: int = 50
    size_bytes: int = 64 << 20
    time_s: float = 4.0


@dataclass(frozen=True, slots=True)
class KeptRecord(Generic[Kept]):
    """What `keep` made of the record with this offset and timestamp in ms."""

    name: TopicPartition
    offset: int
    timestamp_ms: int
    content: Kept


@dataclass(frozen=True, slots=True)
class RecordPage(Generic[Kept]):
    """A page of records, in the order of their times as far as the order of offsets allows.

    `older` and `newer` are the offsets before and from which other records follow, per partition.
    `has_older` and `has_newer` say whether there are such offsets. `examined` records were read.
    `is_cut_short`: a limit ended the search before the page was full. `unread` are partitions
    whose leaders sent nothing in time.
    """

    records: tuple[KeptRecord[Kept], ...]
    older: Offsets
    newer: Offsets
    has_older: bool
    has_newer: bool
    examined: int
    is_cut_short: bool
    unread: tuple[TopicPartition, ...]


@dataclass(slots=True)
class _ReadBudget:
    """What is left of the limits; `deadline_s` is in the loop's time."""

    deadline_s: float
    size_bytes: int
    examined: int = 0
    progress: set[TopicPartition] = field(default_factory=set)

    def is_spent(self) -> bool:
        return self.size_bytes <= 0 or asyncio.get_running_loop().time() >= self.deadline_s


class RecordReader(Generic[Kept]):
    """Reads pages of records with a consumer that belongs to no group.

    `keep` returns what to keep of a record, or None to leave it out. `starts` and `ends` are the
    bounds of the logs to read in.
    """

    def __init__(
        self,
        consumer: Consumer,
        keep: Callable[[TopicPartition, Record], Kept | None],
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        limits: ReadLimits,
    ) -> None:
        self._consumer = consumer
        self._keep = keep
        self._starts, self._ends = starts, ends
        self._limits = limits

    async def onward(self, offsets: Mapping[TopicPartition, int]) -> RecordPage[Kept]:
        """Return a page from these offsets on. Raises OttlaError."""
        budget = self._budget()
        places = {
            name: max(offset, self._starts[name])
            for name, offset in offsets.items()
            if name in self._ends
        }
        reached, found = await self._read(places, self._ends, budget, self._limits.records)
        newer = {name: max(reached.get(name, 0), offset) for name, offset in places.items()}
        ordered = _merged({name: found.get(name, []) for name in places})
        more = any(newer[name] < self._ends[name] for name in newer)
        return self._page(ordered, places, newer, budget, more=more)

    async def backward(self, offsets: Mapping[TopicPartition, int]) -> RecordPage[Kept]:
        """Return the page before these offsets, the newest records first. Raises OttlaError.

        Reads a window before the offsets, and larger ones before it until the page is full.
        """
        budget = self._budget()
        upper = {
            name: min(offset, self._ends[name])
            for name, offset in offsets.items()
            if name in self._ends
        }
        first, width = dict(upper), self._limits.records
        kept: dict[TopicPartition, list[KeptRecord[Kept]]] = {name: [] for name in upper}
        while not budget.is_spent():
            lower = {name: max(self._starts[name], first[name] - width) for name in first}
            if lower == first or sum(map(len, kept.values())) >= self._limits.records:
                break
            reached, found = await self._read(lower, first, budget, None)
            # A window that was not read to its end is read again by the next call.
            done = {name for name in lower if reached.get(name, -1) >= first[name]}
            for name in done:
                kept[name] = [*found.get(name, []), *kept[name]]
                first[name] = lower[name]
            if len(done) < len(lower):
                break
            width *= 4
        newest, first = _newest(kept, first, self._limits.records)
        more = any(first[name] > self._starts[name] for name in first)
        return self._page(newest, first, upper, budget, more=more)

    def _budget(self) -> _ReadBudget:
        now_s = asyncio.get_running_loop().time()
        return _ReadBudget(now_s + self._limits.time_s, self._limits.size_bytes)

    def _page(
        self,
        records: list[KeptRecord[Kept]],
        older: Offsets,
        newer: Offsets,
        budget: _ReadBudget,
        *,
        more: bool,
    ) -> RecordPage[Kept]:
        is_full = len(records) >= self._limits.records
        silent = sorted(
            name
            for name in older
            if name not in budget.progress and self._starts[name] < self._ends[name]
        )
        return RecordPage(
            tuple(records),
            older,
            newer,
            any(older[name] > self._starts[name] for name in older),
            any(newer[name] < self._ends[name] for name in newer),
            budget.examined,
            more and not is_full and budget.is_spent(),
            tuple(silent) if budget.is_spent() else (),
        )

    async def _read(
        self,
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        budget: _ReadBudget,
        most: int | None,
    ) -> tuple[Offsets, dict[TopicPartition, list[KeptRecord[Kept]]]]:
        """Read from `starts` to `ends`, or until `most` records are kept or the budget is spent.

        Return the offset that was reached in each partition, and the kept records.
        """
        found: dict[TopicPartition, list[KeptRecord[Kept]]] = {}
        reached = {name: offset for name, offset in starts.items() if offset >= ends[name]}
        budget.progress.update(reached)
        wanted = {name: offset for name, offset in starts.items() if name not in reached}
        consumer = self._consumer
        await consumer.assign(wanted)
        consumer.resume(wanted)
        for name, offset in wanted.items():
            consumer.seek(name, offset)
        count = 0
        while wanted and not budget.is_spent() and (most is None or count < most):
            for batch in (await consumer.poll(_POLL_S, _POLL_RECORDS)).by_partition:
                name = TopicPartition(batch.topic, batch.partition)
                for record in batch.records:
                    if record.offset >= ends[name] or (most is not None and count >= most):
                        break
                    budget.examined += 1
                    budget.size_bytes -= len(record.value or b"") + len(record.key or b"") + 100
                    reached[name] = record.offset + 1
                    content = self._keep(name, record)
                    if content is not None:
                        count += 1
                        found.setdefault(name, []).append(
                            KeptRecord(name, record.offset, record.timestamp, content)
                        )
            if most is not None and count >= most:
                break
            for name in list(wanted):
                position = await consumer.position(name)
                if position > wanted[name]:
                    budget.progress.add(name)
                if position >= ends[name]:
                    reached[name] = ends[name]
                    del wanted[name]
                    consumer.pause(name)
        budget.progress.update(found)
        return reached, found


def _merged(found: Mapping[TopicPartition, list[KeptRecord[Kept]]]) -> list[KeptRecord[Kept]]:
    """Merge partitions by time, each in the order of its offsets."""
    heads = {name: 0 for name, records in found.items() if records}
    merged: list[KeptRecord[Kept]] = []
    while heads:
        name = min(heads, key=lambda one: (found[one][heads[one]].timestamp_ms, one))
        merged.append(found[name][heads[name]])
        heads[name] += 1
        if heads[name] == len(found[name]):
            del heads[name]
    return merged


def _newest(
    found: Mapping[TopicPartition, list[KeptRecord[Kept]]], lower: Offsets, most: int
) -> tuple[list[KeptRecord[Kept]], Offsets]:
    """Return the newest records of all partitions, the newest first, and the offsets before them.

    `lower` has the offsets down to which all matching records are in `found`.
    """
    counts = {name: len(records) for name, records in found.items() if records}
    newest: list[KeptRecord[Kept]] = []
    while counts and len(newest) < most:
        name = max(counts, key=lambda one: (found[one][counts[one] - 1].timestamp_ms, one))
        counts[name] -= 1
        newest.append(found[name][counts[name]])
        if not counts[name]:
            del counts[name]
    # Records that did not fit into the page come with the next one.
    before = {name: found[name][count - 1].offset + 1 for name, count in counts.items()}
    return newest, {**lower, **before}


async def bounds(
    cluster: Cluster, partitions: Iterable[TopicPartition], patience_s: float
) -> tuple[Offsets, Offsets, dict[TopicPartition, OttlaError]]:
    """Return the log start and end offsets of partitions, and errors of those without an answer.

    Leaders are asked at once, each for at most `patience_s`.
    """
    partitions = list(partitions)
    starts, failed = await offsets_in_time(cluster, partitions, EARLIEST, patience_s)
    ends, later = await offsets_in_time(cluster, starts, LATEST, patience_s)
    return {name: starts[name] for name in ends}, ends, {**failed, **later}
