"""Where partitions end for readers, asked of their leaders: for the lag of share groups."""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicPartition
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker

_LATEST = -1
_CONSUMER = -1
_TIMEOUT_MS = 5_000


async def log_ends(
    broker: "Broker", partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """The high watermarks of those whose leaders answer; the others are left out."""
    found: dict[TopicPartition, int] = {}
    elsewhere: dict[BrokerId, list[TopicPartition]] = {}
    for each in partitions:
        state = broker.image.partition(each.topic, each.partition)
        if state is None:
            continue
        if state.leader == broker.broker_id:
            local = broker.partitions.find(each.topic, each.partition)
            if local is not None and local.leader is not None:
                found[each] = local.high_watermark
        elif state.leader in broker.image.brokers:
            elsewhere.setdefault(state.leader, []).append(each)
    asked = [_ask(broker, leader, wanted) for leader, wanted in elsewhere.items()]
    for answered in await asyncio.gather(*asked):
        found |= answered
    return found


async def _ask(
    broker: "Broker", leader: BrokerId, wanted: list[TopicPartition]
) -> dict[TopicPartition, int]:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for topic, index in wanted:
        topics.setdefault(topic, []).append(
            ListOffsetsPartition(partition_index=index, current_leader_epoch=-1, timestamp=_LATEST)
        )
    request = ListOffsetsRequest(
        replica_id=_CONSUMER,
        topics=[ListOffsetsTopic(name=name, partitions=parts) for name, parts in topics.items()],
    )
    try:
        answer = await broker.peers.request(leader, request, timeout_ms=_TIMEOUT_MS)
    except OttlaError:
        return {}
    return {
        TopicPartition(topic.name, part.partition_index): part.offset
        for topic in answer.topics
        for part in topic.partitions
        if part.error_code == ErrorCode.NONE
    }
