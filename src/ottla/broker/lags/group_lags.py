"""The lag of the groups that this broker coordinates, in every partition that they read.

A group's lag is reported by its coordinator alone, so that sums over all brokers count it once.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicPartition
from ottla.broker.cluster.links import Links
from ottla.broker.groups import Groups
from ottla.broker.groups.groups import GroupStatus
from ottla.broker.lags.reader_place import Places, ReaderPlace
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.runtime.part import BrokerPart
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.view import ClusterView
from ottla.wire.messages.log_cleaning import (
    ReaderLagRequest,
    ReaderLagResponse,
    ReaderLagTopic,
    ReaderOffset,
)

# A leader that does not answer in this time is left out, so that its groups' lag is missing.
_TIMEOUT_MS = 2_000
# Offsets that are looked up, or sent, in one turn of the loop.
_SLICE = 100


class ReaderLag(NamedTuple):
    """The committed offset of a group in a partition, and its place if the leader answered."""

    name: TopicPartition
    committed: int
    committed_at_ms: int
    place: ReaderPlace | None


class GroupLag(NamedTuple):
    """A group, and where it reads. A share group has no committed offsets."""

    group_id: str
    state: str
    members: int
    readers: tuple[ReaderLag, ...]


@dataclass(frozen=True, slots=True)
class LagsStatus:
    """The groups at the last `refresh`, and its time of day; 0 if there was none."""

    groups: tuple[GroupLag, ...]
    at_ms: int


class _LagReader(NamedTuple):
    """An offset to look up."""

    group_id: str
    name: TopicPartition
    offset: int


class GroupLags(BrokerPart):
    """Looks up the lags when `refresh` is called; nothing happens in between."""

    def __init__(
        self,
        view: ClusterView,
        runtime: Runtime,
        partitions: Partitions,
        groups: Groups,
        links: Links,
    ) -> None:
        self._view = view
        self._runtime = runtime
        self._partitions = partitions
        self._groups = groups
        self._links = links
        self.places = Places()
        self._status = LagsStatus((), 0)

    async def stop(self) -> None:
        self._links.close()

    def status(self) -> LagsStatus:
        return self._status

    async def refresh(self) -> None:
        """Look up the lag of every group, for `status`."""
        groups = self._groups.status().each
        await asyncio.sleep(0)
        readers = [
            _LagReader(group.group_id, name, offset)
            for group in groups
            for name, offset, _ in group.offsets
        ]
        places = await self._places(readers)
        now_ms = self._runtime.clock.now_ms()
        self._status = LagsStatus(tuple(_lags(groups, places)), now_ms)

    async def _places(
        self, readers: list[_LagReader]
    ) -> dict[tuple[str, TopicPartition], ReaderPlace]:
        """Return the places by group and partition, of leaders that answer."""
        by_leader: dict[BrokerId, list[_LagReader]] = {}
        for reader in readers:
            state = self._view.image.partition(*reader.name)
            if state is not None and state.leader in self._view.image.brokers:
                by_leader.setdefault(state.leader, []).append(reader)
        own = by_leader.pop(self._view.broker_id, [])
        found: dict[tuple[str, TopicPartition], ReaderPlace] = {}
        others = (self._there(leader, each, found) for leader, each in by_leader.items())
        await asyncio.gather(self._here(own, found), *others)
        return found

    async def _here(
        self, readers: list[_LagReader], found: dict[tuple[str, TopicPartition], ReaderPlace]
    ) -> None:
        now_ms = self._runtime.clock.now_ms()
        for number, (group_id, name, offset) in enumerate(readers, 1):
            partition = self._partitions.find(*name)
            if partition is not None:
                # If the leader has just changed, the next look finds the new one.
                with contextlib.suppress(OttlaError):
                    found[group_id, name] = self.places.find(partition, offset, group_id, now_ms)
            if number % _SLICE == 0:
                await asyncio.sleep(0)

    async def _there(
        self,
        leader: BrokerId,
        readers: list[_LagReader],
        found: dict[tuple[str, TopicPartition], ReaderPlace],
    ) -> None:
        for first in range(0, len(readers), 10 * _SLICE):
            some = readers[first : first + 10 * _SLICE]
            topics: dict[str, list[_LagReader]] = {}
            for reader in some:
                topics.setdefault(reader.name.topic, []).append(reader)
            try:
                answer: ReaderLagResponse = await self._links.request(
                    leader, _request(topics), timeout_ms=_TIMEOUT_MS
                )
            except OttlaError:
                return
            if answer.error_code != ErrorCode.NONE:
                return
            for result, asked in zip(answer.topics, topics.values(), strict=True):
                for place, reader in zip(result.places, asked, strict=True):
                    if place.error_code == ErrorCode.NONE:
                        found[reader.group_id, reader.name] = ReaderPlace(
                            place.log_start_offset,
                            place.high_watermark,
                            place.since_ms,
                            place.left_ms,
                        )


def _request(topics: dict[str, list[_LagReader]]) -> ReaderLagRequest:
    return ReaderLagRequest(
        topics=[
            ReaderLagTopic(
                name=topic,
                readers=[
                    ReaderOffset(partition=name.partition, offset=offset, group_id=group_id)
                    for group_id, name, offset in readers
                ],
            )
            for topic, readers in topics.items()
        ]
    )


def _lags(
    groups: Iterable[GroupStatus], places: dict[tuple[str, TopicPartition], ReaderPlace]
) -> Iterator[GroupLag]:
    for group_id, state, members, offsets in groups:
        readers = tuple(
            ReaderLag(
                name,
                offset,
                at_ms,
                places.get((group_id, name)),
            )
            for name, offset, at_ms in offsets
        )
        yield GroupLag(group_id, state, members, readers)
