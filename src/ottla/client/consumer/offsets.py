"""Looks up offsets by name or time at the leaders (KIP-79, KIP-734)."""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.client.common.errors import (
    ClientError,
    ConnectionFailed,
    Needs,
    RequestTimedOut,
    code_of,
    refused,
)
from ottla.client.connection.cluster import Cluster
from ottla.client.connection.view import NO_LEADER, ClusterView
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

EARLIEST = -2
LATEST = -1
MAX_TIMESTAMP = -3

READ_UNCOMMITTED = 0
READ_COMMITTED = 1


class OffsetAndTimestamp(NamedTuple):
    """An offset, its record's timestamp in ms, its leader epoch; -1 means none."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


async def list_offsets(
    cluster: Cluster,
    wanted: Mapping[TopicPartition, int],
    isolation_level: int = READ_UNCOMMITTED,
) -> dict[TopicPartition, OffsetAndTimestamp]:
    """Return per partition the offset for EARLIEST, LATEST, MAX_TIMESTAMP or a time in ms.

    A time selects the first record at or after it, offset -1 if there is none. Retries while
    leaders move; raises UnknownTopic, BrokerRefused, ConnectionFailed.
    """
    found: dict[TopicPartition, OffsetAndTimestamp] = {}
    left = dict(wanted)
    attempt = 0
    while True:
        failure = await _ask_leaders(cluster, left, isolation_level, found)
        left = {partition: time for partition, time in left.items() if partition not in found}
        if not left:
            return found
        assert failure is not None
        attempt += 1
        if attempt * cluster.options.backoff.most_ms > cluster.options.retry_timeout_ms:
            raise failure
        await cluster.pause(attempt)
        await _refresh_quietly(cluster)


async def _refresh_quietly(cluster: Cluster) -> None:
    try:
        await cluster.refresh()
    except (ConnectionFailed, RequestTimedOut):
        # The next attempt will fail, too, and raise the error if it is the last.
        return


async def _ask_leaders(
    cluster: Cluster,
    left: Mapping[TopicPartition, int],
    isolation_level: int,
    found: dict[TopicPartition, OffsetAndTimestamp],
) -> ClientError | None:
    """Ask each leader once; put offsets into `found`, and return an error that may be retried."""
    failure: ClientError | None = None
    by_leader: dict[int, list[TopicPartition]] = {}
    for partition in left:
        await cluster.partition(partition)
        by_leader.setdefault(cluster.view.leader(*partition), []).append(partition)
    for leader, partitions in by_leader.items():
        if leader == NO_LEADER:
            code = ErrorCode.LEADER_NOT_AVAILABLE
            failure = refused(code, f"list offsets of {partitions[0]}")
            continue
        times = {partition: left[partition] for partition in partitions}
        request = offsets_request(cluster.view, times, isolation_level)
        request.timeout_ms = cluster.options.request_timeout_ms
        try:
            answer = await cluster.ask(leader, request, ListOffsetsResponse)
        except (ConnectionFailed, RequestTimedOut) as error:
            failure = error
            continue
        failure = _take(answer, found) or failure
    return failure


def offsets_request(
    view: ClusterView, times: Mapping[TopicPartition, int], isolation_level: int
) -> ListOffsetsRequest:
    """Return the request for partitions of one leader, by time or EARLIEST, LATEST, …."""
    topics: dict[str, ListOffsetsTopic] = {}
    for partition, time in times.items():
        topic = topics.setdefault(partition.topic, ListOffsetsTopic(name=partition.topic))
        topic.partitions.append(
            ListOffsetsPartition(
                partition_index=partition.partition,
                current_leader_epoch=view.leader_epoch(*partition),
                timestamp=time,
            )
        )
    return ListOffsetsRequest(
        replica_id=-1, isolation_level=isolation_level, topics=list(topics.values())
    )


def epochs_request(
    wanted: Mapping[TopicPartition, tuple[int, int]],
) -> OffsetForLeaderEpochRequest:
    """Return the request for the end offsets of leader epochs, for one leader (KIP-320).

    `wanted` has per partition the current leader epoch and the epoch to look up.
    """
    topics: dict[str, OffsetForLeaderTopic] = {}
    for partition, (current, read) in wanted.items():
        topic = topics.setdefault(partition.topic, OffsetForLeaderTopic(topic=partition.topic))
        topic.partitions.append(
            OffsetForLeaderPartition(
                partition=partition.partition, current_leader_epoch=current, leader_epoch=read
            )
        )
    return OffsetForLeaderEpochRequest(replica_id=-1, topics=list(topics.values()))


def _take(
    answer: ListOffsetsResponse, found: dict[TopicPartition, OffsetAndTimestamp]
) -> ClientError | None:
    failure: ClientError | None = None
    for topic in answer.topics:
        for one in topic.partitions:
            partition = TopicPartition(topic.name, one.partition_index)
            if not one.error_code:
                found[partition] = OffsetAndTimestamp(one.offset, one.timestamp, one.leader_epoch)
                continue
            needed = [Needs("describe", "topic", topic.name)]
            failure = refused(one.error_code, f"list offsets of {partition}", None, needed)
            if not code_of(one.error_code).retriable:
                raise failure
    return failure
