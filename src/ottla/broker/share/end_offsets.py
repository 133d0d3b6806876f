"""The high watermarks of partitions, from their leaders: for the lag of share groups."""

import asyncio
from collections.abc import Iterable

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicPartition
from ottla.broker.cluster.peers import Peers
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.runtime.view import ClusterView
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

_LATEST = -1
_CONSUMER = -1
_TIMEOUT_MS = 5_000


class EndOffsets:
    """Finds high watermarks: here, or with ListOffsets at the broker that leads."""

    def __init__(self, view: ClusterView, partitions: Partitions, peers: Peers) -> None:
        self._view = view
        self._partitions = partitions
        self._peers = peers

    async def find(self, wanted: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The high watermarks of the partitions; left out if the leader does not answer."""
        found: dict[TopicPartition, int] = {}
        elsewhere: dict[BrokerId, list[TopicPartition]] = {}
        image = self._view.image
        for each in wanted:
            state = image.partition(each.topic, each.partition)
            if state is None:
                continue
            if state.leader == self._view.broker_id:
                local = self._partitions.find(each.topic, each.partition)
                if local is not None and local.leader is not None:
                    found[each] = local.high_watermark
            elif state.leader in image.brokers:
                elsewhere.setdefault(state.leader, []).append(each)
        requests = [self._request(leader, led) for leader, led in elsewhere.items()]
        for answered in await asyncio.gather(*requests):
            found |= answered
        return found

    async def _request(
        self, leader: BrokerId, wanted: list[TopicPartition]
    ) -> dict[TopicPartition, int]:
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for topic, index in wanted:
            topics.setdefault(topic, []).append(
                ListOffsetsPartition(
                    partition_index=index, current_leader_epoch=-1, timestamp=_LATEST
                )
            )
        request = ListOffsetsRequest(
            replica_id=_CONSUMER,
            topics=[
                ListOffsetsTopic(name=name, partitions=parts) for name, parts in topics.items()
            ],
        )
        try:
            answer = await self._peers.request(leader, request, timeout_ms=_TIMEOUT_MS)
        except OttlaError:
            return {}
        return {
            TopicPartition(topic.name, part.partition_index): part.offset
            for topic in answer.topics
            for part in topic.partitions
            if part.error_code == ErrorCode.NONE
        }
