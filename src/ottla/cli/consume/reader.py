"""Reads records for `ottla consume`, and writes them to standard output."""

import asyncio
import re
import sys
from dataclasses import dataclass

import click

from ottla.base.ids import TopicPartition
from ottla.cli.common.connect import reach
from ottla.cli.consume.shape import Shape
from ottla.cli.text.places import matching
from ottla.client import Consumer, ConsumerOptions, Records
from ottla.client.connection.cluster import Cluster, connections_of
from ottla.client.consumer.offsets import LATEST
from ottla.diagnosis.partitions import Offsets, offsets_at, partitions_of
from ottla.diagnosis.record_choice import Condition, Position
from ottla.diagnosis.records import resolved

# Records per poll: enough to be fast, but few enough to show them soon.
_POLL_RECORDS = 10_000
_POLL_MS = 200


@dataclass(frozen=True, slots=True)
class Wish:
    """The records to read, and how to show them."""

    words: tuple[str, ...]
    regex: bool
    read_committed: bool
    follow: bool
    start: Position
    until: int | None
    count: int | None
    chosen: tuple[int, ...]
    group: str | None
    pattern: re.Pattern[bytes] | None
    where: Condition | None
    show: Shape


async def read(bootstrap: str, wish: Wish) -> None:
    """Show the requested records on standard output; stop at the requested end."""
    settings = ConsumerOptions(
        group_id=wish.group,
        enable_auto_commit=False,
        auto_offset_reset="latest" if wish.group and wish.start.kind == "latest" else "earliest",
        isolation_level="read_committed" if wish.read_committed else "read_uncommitted",
        client_id="ottla-cli",
    )
    assigned = asyncio.Event()
    async with Consumer(bootstrap, **settings, on_assigned=lambda _: assigned.set()) as consumer:
        await reach(connections_of(consumer))
        topics = await matching(connections_of(consumer), wish.words, regex=wish.regex)
        partitions = [
            place
            for topic in topics
            for place in await partitions_of(connections_of(consumer), topic, wish.chosen)
        ]
        ends = None if wish.follow else await _ends(consumer, partitions, wish)
        if wish.group is None:
            starts = await resolved(connections_of(consumer), partitions, wish.start)
            await _say_if_beyond(connections_of(consumer), starts, wish)
            await consumer.assign(partitions)
            for place, offset in starts.items():
                consumer.seek(place, offset)
            assigned.set()
        else:
            consumer.subscribe(topics)
        await _Reader(consumer, wish, ends, assigned).read()


async def _say_if_beyond(cluster: Cluster, starts: Offsets, wish: Wish) -> None:
    """Print a note to standard error if there is no record at the requested position yet."""
    if wish.start.kind not in ("offset", "time"):
        return
    ends = await offsets_at(cluster, starts, LATEST)
    asked = wish.start.number
    is_offset = wish.start.kind == "offset"
    empty = {
        place: end for place, end in ends.items() if (asked if is_offset else starts[place]) >= end
    }
    # With a start time, some partitions usually have no record; only an offset must exist in all.
    if not empty or (not is_offset and len(empty) < len(ends)):
        return
    where = ", ".join(f"{place} ends at offset {end}" for place, end in sorted(empty.items()))
    what = f"from offset {asked} on" if is_offset else "of that time or later"
    later = "; what comes is shown" if wish.follow else ""
    click.echo(f"there is no record {what} yet: {where}{later}", err=True)


async def _ends(consumer: Consumer, partitions: list[TopicPartition], wish: Wish) -> Offsets:
    """Return the present log end offsets or, if lower, the offsets of the time to stop at."""
    ends = await consumer.end_offsets(partitions)
    if wish.until is not None:
        found = await offsets_at(connections_of(consumer), partitions, wish.until)
        for place, offset in found.items():
            if offset >= 0:
                ends[place] = min(ends[place], offset)
    return ends


class _Reader:
    """Shows records up to the requested count or end."""

    def __init__(
        self, consumer: Consumer, wish: Wish, ends: Offsets | None, assigned: asyncio.Event
    ) -> None:
        self._consumer = consumer
        # Set once the assigned partitions are known.
        self._assigned = assigned
        self._wish = wish
        self._ends = ends
        self._shown = 0

    async def read(self) -> None:
        """Show records up to the requested count or end, if any; commit the records shown."""
        while not await self._is_done():
            found = (await self._consumer.poll(_POLL_MS / 1000, self._limit())).by_partition
            for records in found:
                self._show(records)
            sys.stdout.flush()
            if self._wish.group and found:
                await self._commit(found)

    async def _commit(self, found: list[Records]) -> None:
        """Commit positions, but not beyond the requested end: later records were not shown."""
        positions: Offsets = {}
        for records in found:
            place = TopicPartition(records.topic, records.partition)
            reached = await self._consumer.position(place)
            ends = self._ends or {}
            positions[place] = min(reached, ends.get(place, reached))
        await self._consumer.commit(positions)

    def _limit(self) -> int:
        wish = self._wish
        if wish.count is None:
            return _POLL_RECORDS
        if (wish.pattern or wish.where) is not None and not wish.group:
            # It is not known how many polled records will be shown.
            return _POLL_RECORDS
        # With a group every polled record is committed, so poll only as many as will be shown.
        return min(wish.count - self._shown, _POLL_RECORDS)

    async def _is_done(self) -> bool:
        if self._wish.count is not None and self._shown >= self._wish.count:
            return True
        if self._ends is None or not self._assigned.is_set():
            return False
        for place in self._consumer.assignment():
            if await self._consumer.position(place) < self._ends.get(place, 0):
                return False
        return True

    def _show(self, found: Records) -> None:
        place = TopicPartition(found.topic, found.partition)
        end = None if self._ends is None else self._ends.get(place)
        wish = self._wish
        out: list[bytes] = []
        for record in found.records:
            if end is not None and record.offset >= end:
                break
            if wish.count is not None and self._shown >= wish.count:
                break
            if wish.pattern is not None and not (
                wish.pattern.search(record.value or b"") or wish.pattern.search(record.key or b"")
            ):
                continue
            if wish.where is not None and not wish.where(record):
                continue
            out.append(wish.show(place, record))
            self._shown += 1
        sys.stdout.buffer.write(b"".join(out))
