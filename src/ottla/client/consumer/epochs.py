"""Where epochs end in the logs of the leaders, so that a consumer notices a truncation (KIP-320).

After an unclean election a log may lack records that were read already. Offsets alone do not show
it, as others may have them by now. A position together with the leader epoch of the last record
before it does.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.common.errors import OffsetOutOfRange
from ottla.client.connection.cluster import Cluster
from ottla.client.connection.view import NO_LEADER
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

_CONSUMER = -1


class LogTruncated(OffsetOutOfRange):
    """Records that were read were truncated: an unclean election lost them.

    The log and what was read part at `offset`, which is where to seek to go on.
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
    """The greatest epoch the leader knows that is not above the one asked for, and its end.

    Both -1 where it knows none as old.
    """

    leader_epoch: int
    end_offset: int

    def is_truncated(self, offset: int, leader_epoch: int) -> bool:
        """Whether the record before `offset`, read in `leader_epoch`, is not in this log."""
        return self.end_offset < offset or self.leader_epoch != leader_epoch

    def parting(self, offset: int) -> int:
        """The offset below `offset` to go back to: from there on this log may differ."""
        return max(min(self.end_offset, offset - 1), 0)


async def ends_of_epochs(
    cluster: Cluster, leader: int, wanted: Mapping[TopicPartition, tuple[int, int]]
) -> dict[TopicPartition, EpochEnd]:
    """Ask one leader; `wanted` has the leader's present epoch and the one to look up.

    Partitions it does not answer for are left out. Raises ConnectionFailed, RequestTimedOut.
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
