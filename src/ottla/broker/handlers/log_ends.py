"""LogEnds (1002), version 0: how far this broker's replicas without a leader are.

Ottla's own, and between brokers only. A replica answers in the term that the controller asks for
and in no other, so that its log is as it says until somebody is elected.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode
from ottla.broker.requests.legacy import LegacyHandler
from ottla.broker.requests.request import RequestContext
from ottla.wire.api import ApiKey
from ottla.wire.messages.log_ends import (
    LogEnd,
    LogEndsPartition,
    LogEndsRequest,
    LogEndsResponse,
    LogEndsTopic,
    LogEndsTopicResult,
)

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


def handle(
    broker: "Broker", _request: RequestContext | None, body: LogEndsRequest
) -> LogEndsResponse:
    """Look at each log. Raises OttlaError where the controller or this life is of the past."""
    broker.fence.check(body.controller_id, body.controller_epoch, body.broker_epoch)
    return LogEndsResponse(
        topics=[
            LogEndsTopicResult(
                topic_name=topic.topic_name,
                partitions=[_end(broker, topic, wanted) for wanted in topic.partitions],
            )
            for topic in body.topics
        ]
    )


def _end(broker: "Broker", topic: LogEndsTopic, wanted: LogEndsPartition) -> LogEnd:
    partition = broker.partitions.find(topic.topic_name, wanted.partition_index)
    answer = LogEnd(partition_index=wanted.partition_index)
    if partition is None or partition.topic_id != topic.topic_id:
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif partition.failure is not None:
        answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    elif partition.leader_epoch != wanted.leader_epoch:
        older = partition.leader_epoch < wanted.leader_epoch
        answer.error_code = (
            ErrorCode.UNKNOWN_LEADER_EPOCH if older else ErrorCode.FENCED_LEADER_EPOCH
        )
    else:
        answer.latest_epoch = partition.log.leader_epochs.latest
        answer.end_offset = partition.log_end_offset
        answer.start_offset = partition.log.log_start_offset
    return answer


def on_error(
    _body: LogEndsRequest, code: ErrorCode, _message: str | None, _version: int
) -> LogEndsResponse:
    """The error of the whole request."""
    return LogEndsResponse(error_code=code)


HANDLER = LegacyHandler(ApiKey.LOG_ENDS, 0, 0, handle)
