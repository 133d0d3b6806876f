"""DescribeProducers (61), version 0: producers a partition remembers, and their transactions.

For finding transactions that hang (KIP-664). Any replica answers, a follower with what it has.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.requests.legacy import LegacyHandler
from ottla.broker.requests.request import RequestContext
from ottla.wire.api import ApiKey
from ottla.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


def handle(
    broker: "Broker", _request: RequestContext, body: DescribeProducersRequest
) -> DescribeProducersResponse:
    """Describe the producers of each partition."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_partition(broker, topic.name, i) for i in topic.partition_indexes],
            )
            for topic in body.topics
        ]
    )


def _partition(broker: "Broker", topic: str, index: int) -> PartitionResponse:
    try:
        partition = broker.partitions.get(topic, index)
        partition.check_readable()
        log = partition.log
    except OttlaError as error:
        return _failed(index, error.code, error.message)
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=entry.producer_id,
                producer_epoch=entry.producer_epoch,
                last_sequence=entry.last_sequence,
                last_timestamp=entry.last_timestamp,
                coordinator_epoch=entry.coordinator_epoch,
                current_txn_start_offset=entry.transaction_first_offset,
            )
            for entry in log.describe_producers()
        ],
    )


def _failed(index: int, code: ErrorCode, message: str | None) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=code, error_message=message)


def on_error(
    body: DescribeProducersRequest, code: ErrorCode, message: str | None, _version: int
) -> DescribeProducersResponse:
    """The error on every partition."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_failed(i, code, message) for i in topic.partition_indexes],
            )
            for topic in body.topics
        ]
    )


HANDLER = LegacyHandler(ApiKey.DESCRIBE_PRODUCERS, 0, 0, handle)
