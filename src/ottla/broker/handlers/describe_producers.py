"""DescribeProducers (61), version 0: lists the producers of a partition, and their transactions.

It serves to find hanging transactions (KIP-664). Any replica answers; a follower with its own
state.
"""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import each, named
from ottla.broker.requests.portions import in_portions, items, once
from ottla.broker.requests.request import RequestContext
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.transaction_listings import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)


def _add_indexes(topic: TopicRequest, other: TopicRequest) -> None:
    topic.partition_indexes += other.partition_indexes


@dataclass(slots=True, eq=False, repr=False)
class DescribeProducers(Handler):
    """Serves DescribeProducers."""

    api = Api(
        DescribeProducersRequest,
        DescribeProducersResponse,
        Versions(0, 0),
        needs=each(
            lambda body: body.topics,
            lambda response: response.topics,
            named(AclOperation.READ, AclResource.TOPIC, lambda topic: topic.name),
        ),
        portions=in_portions(
            lambda body: body.topics,
            lambda response: response.topics,
            lambda topic: topic.name,
            inner=items(lambda topic: topic.partition_indexes, lambda topic: topic.partitions),
            most=64,
        ),
        once=once(
            lambda body: body.topics,
            lambda topic: topic.name,
            _add_indexes,
            inner=once(lambda topic: topic.partition_indexes),
        ),
        on_error=lambda body, code, message: DescribeProducersResponse(
            topics=[
                TopicResponse(
                    name=topic.name,
                    partitions=[_failed(i, code, message) for i in topic.partition_indexes],
                )
                for topic in body.topics
            ]
        ),
    )

    partitions: Partitions

    def handle(
        self, _request: RequestContext, body: DescribeProducersRequest
    ) -> DescribeProducersResponse:
        """Describe the producers of each partition."""
        return DescribeProducersResponse(
            topics=[
                TopicResponse(
                    name=topic.name,
                    # Copied into the answer once, because a partition may have many producers.
                    partitions=[
                        self._partition(topic.name, i)
                        for i in dict.fromkeys(topic.partition_indexes)
                    ],
                )
                for topic in body.topics
            ]
        )

    def _partition(self, topic: str, index: int) -> PartitionResponse:
        try:
            partition = self.partitions.get(topic, index)
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
                for entry in log.producers.described()
            ],
        )


def _failed(index: int, code: ErrorCode, message: str | None) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=code, error_message=message)
