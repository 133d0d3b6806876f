"""Asks group coordinators for the committed offsets of a partition's readers."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import cast

from ottla.base.clock import Clock
from ottla.base.errors import OttlaError
from ottla.base.ids import NO_TOPIC_ID, BrokerId, TopicPartition
from ottla.broker.cluster.links import Links
from ottla.broker.cluster.peers import Peers
from ottla.broker.groups import Groups
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.broker.topics.internal_topics import CONSUMER_OFFSETS
from ottla.group.coordinator.coordinator import GroupCoordinator
from ottla.group.model.turn import Call, GroupDecision, Moment
from ottla.group.offsets.stored_offsets import FetchedTopic
from ottla.group.records.stored import CommittedOffset
from ottla.wire.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)

# Maps a share group's id and a partition to the start offset, or UNKNOWN.
StartOffset = Callable[[str, TopicPartition], Awaitable[int]]

# The group has committed no offset, or its coordinator did not answer.
UNKNOWN = -1
_TIMEOUT_MS = 30_000
_IDLE_MS = 60_000
_SILENCE_MS = 60_000


@dataclass(slots=True)
class _Asker:
    """The client of a request to the group coordinator on this broker."""

    version: int = 0
    client_id: str = "ottla-retention"
    client_host: str = ""


class Readers:
    """Asks group coordinators on this broker, or on another over a separate connection."""

    def __init__(
        self,
        view: ClusterView,
        clock: Clock,
        groups: Groups,
        peers: Peers,
        start_offset: StartOffset,
    ) -> None:
        self._view = view
        self._clock = clock
        self._groups = groups
        self._links = Links(peers, idle_ms=_IDLE_MS)
        self._start_offset = start_offset
        # Coordinators that did not answer, with the time (ms) until which they are not asked again.
        self._silent: dict[BrokerId, int] = {}

    def close(self) -> None:
        """Close all connections."""
        self._links.close()

    async def committed(self, groups: Sequence[str], partition: TopicPartition) -> dict[str, int]:
        """Return the committed offset of each group in a partition, or UNKNOWN.

        A share group commits no offsets; its start offset is returned, below which all records are
        processed.
        """
        answers = await asyncio.gather(*(self._standing(group, partition) for group in groups))
        return dict(zip(groups, answers, strict=True))

    async def _standing(self, group: str, partition: TopicPartition) -> int:
        committed = await self._committed(group, partition)
        if committed != UNKNOWN:
            return committed
        return await self._start_offset(group, partition)

    async def _committed(self, group: str, partition: TopicPartition) -> int:
        index = self._groups.partition_index(group)
        state = None
        if index is not None:
            state = self._view.image.partition(CONSUMER_OFFSETS, index)
        if state is None or state.leader < 0:
            return UNKNOWN
        now_ms = self._clock.monotonic_ms()
        if self._silent.get(state.leader, now_ms) > now_ms:
            return UNKNOWN
        try:
            async with asyncio.timeout(_TIMEOUT_MS / 1000):
                if state.leader == self._view.broker_id:
                    return await self._here(group, partition)
                return await self._there(state.leader, group, partition)
        except OttlaError:
            return UNKNOWN
        except TimeoutError:
            self._silent[state.leader] = self._clock.monotonic_ms() + _SILENCE_MS
            return UNKNOWN

    async def _here(self, group: str, partition: TopicPartition) -> int:
        image = self._view.image.topics.get(partition.topic)
        known = (NO_TOPIC_ID, NO_TOPIC_ID if image is None else image.id)

        def is_shown(_name: TopicPartition, committed: CommittedOffset) -> bool:
            return committed.topic_id in known

        def fetch(coordinator: GroupCoordinator, call: Call, _at: Moment) -> GroupDecision:
            wanted = [(partition.topic, [partition.partition])]
            return coordinator.offsets.fetch(
                call, group, wanted, lambda topics: topics, shown=is_shown
            )

        asker = cast("RequestContext", _Asker())
        topics: list[FetchedTopic] = await self._groups.run_and_wait(asker, group, fetch)
        return topics[0].partitions[0].offset

    async def _there(self, leader: BrokerId, group: str, partition: TopicPartition) -> int:
        image = self._view.image.topics.get(partition.topic)
        if image is None:
            return UNKNOWN
        topic = OffsetFetchRequestTopic(
            name=partition.topic, topic_id=image.id, partition_indexes=[partition.partition]
        )
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=[topic])]
        )
        answer: OffsetFetchResponse = await self._links.request(
            leader, request, timeout_ms=_TIMEOUT_MS
        )
        (committed,) = answer.groups
        if committed.error_code or not committed.topics:
            return UNKNOWN
        found = committed.topics[0].partitions[0]
        return UNKNOWN if found.error_code else found.committed_offset
