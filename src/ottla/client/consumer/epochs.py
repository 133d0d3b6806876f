"""Looks up where leader epochs end, so that a consumer notices a truncation (KIP-320).

After an unclean election a log may lack records that were already read. Offsets alone do not show
it, because other records may have them by now. A position together with the leader epoch of the
last record before it does.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.common.errors import OffsetOutOfRange
from ottla.client.connection.cluster import Cluster
from ottla.client.connection.view import NO_LEADER
from ottla.wire.messages.list_offsets import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

_CONSUMER = -1


class LogTruncated(OffsetOutOfRange):
    """Records that were read were truncated: an unclean election lost them.

    The log differs from the records read from `offset` on; seek there to continue.
    """

    def __init__(self, partition: TopicPartition, position: int, offset: int) -> None:
        super().__init__(
            f"{partition} was cut by an unclean election: what was read from offset {offset} up "
            f"to {position} is not in its log any more; undo what was made of it and seek to "
            f"{offset}, or let auto_offset_reset be 'earliest' or 'latest' to go on there"
        )
        self.partition = partition
        self.offset = offset


class EpochEnd(NamedTuple):
    """The leader's greatest epoch up to the requested one, and its end offset.

    Both are -1 if the leader knows no such epoch.
    """

    leader_epoch: int
    end_offset: int

    def is_truncated(self, offset: int, leader_epoch: int) -> bool:
        """Whether this log lacks the record before `offset` that was read in `leader_epoch`."""
        return self.end_offset < offset or self.leader_epoch != leader_epoch

    def parting(self, offset: int) -> int:
        """Return the offset to go back to, below `offset`: from there on this log may differ."""
        return max(min(self.end_offset, offset - 1), 0)


async def ends_of_epochs(
    cluster: Cluster, leader: int, wanted: Mapping[TopicPartition, tuple[int, int]]
) -> dict[TopicPartition, EpochEnd]:
    """Ask one leader; `wanted` has the leader's current epoch and the epoch to look up.

    Partitions without an answer are left out. Raises ConnectionFailed, RequestTimedOut.
    """
    if leader == NO_LEADER:
        return {}
    topics: dict[str, OffsetForLeaderTopic] = {}
    for partition, (current, read) in wanted.items():
        topic = topics.setdefault(partition.topic, OffsetForLeaderTopic(topic=partition.topic))
        topic.partitions.append(
            OffsetForLeaderPartition(
                partition=partition.partition, current_leader_epoch=current, leader_epoch=read
            )
        )
    request = OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=list(topics.values()))
    answer = await cluster.ask(leader, request, OffsetForLeaderEpochResponse)
    return {
        TopicPartition(topic.topic, told.partition): EpochEnd(told.leader_epoch, told.end_offset)
        for topic in answer.topics
        for told in topic.partitions
        if not told.error_code
    }
