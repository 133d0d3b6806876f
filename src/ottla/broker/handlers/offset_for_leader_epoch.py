"""OffsetForLeaderEpoch (23), versions 2-4: returns where a leader epoch ended (KIP-101, KIP-320).

Followers get the log's end offset, consumers the high watermark.
"""

from dataclasses import dataclass
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.cluster.admission import require_broker
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import each
from ottla.broker.requests.portions import in_portions, items
from ottla.broker.requests.request import RequestContext
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.list_offsets import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)


def _topic_needs(check: RequestCheck[Any], topic: OffsetForLeaderTopic) -> ErrorCode | None:
    """Require CLUSTER_ACTION on the cluster, or DESCRIBE on the topic."""
    if check.sees_cluster(AclOperation.CLUSTER_ACTION):
        return None
    return check.code(AclOperation.DESCRIBE, AclResource.TOPIC, topic.topic)


@dataclass(slots=True, eq=False, repr=False)
class OffsetForLeaderEpoch(Handler):
    """Serves OffsetForLeaderEpoch."""

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
        # A client asks for the partitions that it reads from one leader.
        fewer_elements_max=100_000,
    )

    partitions: Partitions

    def handle(
        self, request: RequestContext, body: OffsetForLeaderEpochRequest
    ) -> OffsetForLeaderEpochResponse:
        """Look up the end of each epoch."""
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
            return _failed(wanted, error.code)
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
                    partitions=[_failed(wanted, code) for wanted in topic.partitions],
                )
                for topic in body.topics
            ]
        )


def _failed(wanted: OffsetForLeaderPartition, code: ErrorCode) -> EpochEndOffset:
    return EpochEndOffset(partition=wanted.partition, error_code=code)
