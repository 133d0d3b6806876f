"""The handlers that look up offsets by timestamp or by leader epoch."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.cluster.admission import require_broker
from ottla.broker.partitions.delayed_delete_records import until_flushed
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import each, named
from ottla.broker.requests.portions import Repeated, in_portions, items
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.runtime import Runtime
from ottla.security.names import AclOperation, AclResource
from ottla.storage.log.timestamps import max_timestamp_offset, offset_for_timestamp
from ottla.wire.messages.list_offsets import (
    EpochEndOffset,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

# The first version that supports each special timestamp.
_SINCE = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_EPOCHS_SINCE = 4
_NOT_AVAILABLE_SINCE = 5
_READ_COMMITTED = 1
_NO_TIMESTAMP = -1


@dataclass(slots=True, eq=False, repr=False)
class ListOffsets(Handler):
    """ListOffsets (2), versions 1-11: finds offsets by time, and the ends of the log.

    Timestamp -1 means latest (the last stable offset for read_committed), -2 earliest, -3 the
    record with the highest timestamp (KIP-734), -4 earliest on this broker's disk (KIP-405). -5 and
    -6 are about tiered storage, which Ottla lacks: the answer is offset -1 without an error. After
    an election "latest" fails with OFFSET_NOT_AVAILABLE (KIP-207) until the new leader has
    committed all records that the previous leader may have shown. If no follower is in sync, the
    answer waits for the flush in progress, so that "latest" includes records acknowledged with
    acks=1.
    """

    api = Api(
        ListOffsetsRequest,
        ListOffsetsResponse,
        Versions(1, 11),
        needs=each(
            lambda body: body.topics,
            lambda response: response.topics,
            named(AclOperation.DESCRIBE, AclResource.TOPIC, lambda topic: topic.name),
        ),
        portions=in_portions(
            lambda body: body.topics,
            lambda response: response.topics,
            lambda topic: topic.name,
            inner=items(
                lambda topic: topic.partitions,
                lambda topic: topic.partitions,
                lambda partition: partition.partition_index,
            ),
            repeated=Repeated.ANSWERED_EACH,
        ),
        on_error=lambda body, code, _message: ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[_offset_failed(wanted, code) for wanted in topic.partitions],
                )
                for topic in body.topics
            ]
        ),
    )

    partitions: Partitions
    runtime: Runtime

    def handle(self, request: RequestContext, body: ListOffsetsRequest) -> Any:
        """Look up the offset of each partition: at once, unless that takes long.

        librdkafka sends a request for each partition, so a task for each would cost more than the
        look-up.
        """
        if any(_is_search(wanted) for topic in body.topics for wanted in topic.partitions) or any(
            partition.is_committed_by_flush for partition in self._sought(body)
        ):
            return self._handle_later(request, body)
        return next(self._look_ups(request, body))

    async def _handle_later(
        self, request: RequestContext, body: ListOffsetsRequest
    ) -> ListOffsetsResponse:
        await until_flushed(self._sought(body), self.runtime.purgatory)
        for response in self._look_ups(request, body):
            if response is not None:
                return response
            # Serve other requests before the next look-up.
            await asyncio.sleep(0)
        raise AssertionError("the response comes last")

    def _look_ups(
        self, request: RequestContext, body: ListOffsetsRequest
    ) -> Iterator[ListOffsetsResponse | None]:
        """Yield None after a look-up that may have decompressed megabytes, at last the response."""
        committed = body.isolation_level == _READ_COMMITTED
        seen: set[tuple[str, int]] = set()
        twice: set[tuple[str, int]] = set()
        for topic in body.topics:
            for wanted in topic.partitions:
                key = (topic.name, wanted.partition_index)
                (twice if key in seen else seen).add(key)
        answers = []
        for topic in body.topics:
            partitions = []
            for wanted in topic.partitions:
                if (topic.name, wanted.partition_index) in twice:
                    partitions.append(_offset_failed(wanted, ErrorCode.INVALID_REQUEST))
                    continue
                partitions.append(self._look_up(topic.name, wanted, request.version, committed))
                if _is_search(wanted):
                    yield None
            answers.append(ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
        yield ListOffsetsResponse(topics=answers)

    def _sought(self, body: ListOffsetsRequest) -> Iterator[Partition]:
        """Return the partitions whose log end offset the answer needs."""
        for topic in body.topics:
            for wanted in topic.partitions:
                if wanted.timestamp == LATEST or _is_search(wanted):
                    partition = self.partitions.find(topic.name, wanted.partition_index)
                    if partition is not None:
                        yield partition

    def _look_up(
        self, topic: str, wanted: ListOffsetsPartition, version: int, committed: bool
    ) -> ListOffsetsPartitionResponse:
        try:
            partition = self.partitions.get(topic, wanted.partition_index)
            partition.check_led()
            partition.check_leader_epoch(wanted.current_leader_epoch)
            timestamp, offset, epoch = _find(partition, wanted.timestamp, version, committed)
        except OttlaError as error:
            code = error.code
            if code is ErrorCode.OFFSET_NOT_AVAILABLE and version < _NOT_AVAILABLE_SINCE:
                code = ErrorCode.LEADER_NOT_AVAILABLE
            return _offset_failed(wanted, code)
        return ListOffsetsPartitionResponse(
            partition_index=wanted.partition_index,
            timestamp=timestamp,
            offset=offset,
            leader_epoch=epoch if version >= _EPOCHS_SINCE else -1,
        )


def _is_search(wanted: ListOffsetsPartition) -> bool:
    """Whether the look-up reads records."""
    return wanted.timestamp >= 0 or wanted.timestamp == MAX_TIMESTAMP


def _find(
    partition: Partition, timestamp: int, version: int, committed: bool
) -> tuple[int, int, int]:
    """Return (timestamp, offset, leader epoch), each -1 if no record matches."""
    if timestamp < 0 and version < _SINCE.get(timestamp, 1 << 15):
        raise OttlaError(
            ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp} means nothing in this version"
        )
    log = partition.log
    end = partition.last_stable_offset if committed else partition.high_watermark
    if timestamp == LATEST:
        partition.latest_offset()
        return _NO_TIMESTAMP, end, partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return _NO_TIMESTAMP, log.log_start_offset, partition.epoch_of(log.log_start_offset)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _NO_TIMESTAMP, -1, -1
    if timestamp == MAX_TIMESTAMP:
        found = max_timestamp_offset(log)
    else:
        found = offset_for_timestamp(log, timestamp)
    if found is None or found.offset >= end:
        return _NO_TIMESTAMP, -1, -1
    return found.timestamp, found.offset, found.leader_epoch


def _offset_failed(wanted: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index, error_code=code, timestamp=-1, offset=-1
    )


def _topic_needs(check: RequestCheck[Any], topic: OffsetForLeaderTopic) -> ErrorCode | None:
    """Require CLUSTER_ACTION on the cluster or DESCRIBE on the topic."""
    if check.sees_cluster(AclOperation.CLUSTER_ACTION):
        return None
    return check.code(AclOperation.DESCRIBE, AclResource.TOPIC, topic.topic)


@dataclass(slots=True, eq=False, repr=False)
class OffsetForLeaderEpoch(Handler):
    """OffsetForLeaderEpoch (23): returns where a leader epoch ended (KIP-101, KIP-320).

    For the current epoch, followers get the log end offset and consumers the high watermark.
    """

    api = Api(
        OffsetForLeaderEpochRequest,
        OffsetForLeaderEpochResponse,
        Versions(2, 4),
        needs=each(lambda body: body.topics, lambda response: response.topics, _topic_needs),
        portions=in_portions(
            lambda body: body.topics,
            lambda response: response.topics,
            lambda topic: topic.topic,
            inner=items(lambda topic: topic.partitions, lambda topic: topic.partitions),
        ),
        # A client asks only for partitions that it reads from the same leader.
        fewer_elements_max=100_000,
    )

    partitions: Partitions

    def handle(
        self, request: RequestContext, body: OffsetForLeaderEpochRequest
    ) -> OffsetForLeaderEpochResponse:
        """Look up the end offset of each epoch."""
        is_follower = body.replica_id >= 0
        if is_follower:
            require_broker(request, "OffsetForLeaderEpoch", body.replica_id)
        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=[
                        self._look_up(topic.topic, wanted, is_follower=is_follower)
                        for wanted in topic.partitions
                    ],
                )
                for topic in body.topics
            ]
        )

    def _look_up(
        self, topic: str, wanted: OffsetForLeaderPartition, *, is_follower: bool
    ) -> EpochEndOffset:
        try:
            partition = self.partitions.get(topic, wanted.partition)
            partition.check_led()
            partition.check_leader_epoch(wanted.current_leader_epoch)
            epoch, end_offset = partition.log.end_offset_for_epoch(wanted.leader_epoch)
            if wanted.leader_epoch == partition.leader_epoch and not is_follower:
                # Consumers must not see uncommitted records.
                epoch, end_offset = partition.leader_epoch, partition.latest_offset()
        except OttlaError as error:
            return _epoch_failed(wanted, error.code)
        return EpochEndOffset(partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset)

    @staticmethod
    def on_error(
        body: OffsetForLeaderEpochRequest, code: ErrorCode, _message: str | None, _version: int
    ) -> OffsetForLeaderEpochResponse:
        """Return the same error for every partition."""
        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=[_epoch_failed(wanted, code) for wanted in topic.partitions],
                )
                for topic in body.topics
            ]
        )


def _epoch_failed(wanted: OffsetForLeaderPartition, code: ErrorCode) -> EpochEndOffset:
    return EpochEndOffset(partition=wanted.partition, error_code=code)
