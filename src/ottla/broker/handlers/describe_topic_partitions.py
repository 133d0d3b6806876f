"""DescribeTopicPartitions (75), version 0: lists partitions page by page (KIP-966).

Topics are in the order of their names. A page has at most as many partitions as the request and
`max.request.partition.size.limit` allow; the cursor marks the start of the next page.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings
from ottla.broker.requests.access import NOT_ASKED, TOPIC_OPERATIONS
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import Amend, DeniedAnswer, divided
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.metadata.image import INTERNAL_TOPICS, ClusterImage, PartitionImage, TopicImage
from ottla.metadata.topic_names import check_topic_name
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.metadata import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)


def _needs(
    check: RequestCheck[DescribeTopicPartitionsRequest],
) -> Amend[DescribeTopicPartitionsResponse] | DeniedAnswer:
    """Require DESCRIBE on each topic, as for Metadata.

    The answer to a request for all topics leaves out the topics that the client may not DESCRIBE.
    """
    body = check.body
    refused: list[DescribeTopicPartitionsResponseTopic] = []
    if body.topics:
        allowed, denied = divided(
            dict.fromkeys(asked.name for asked in body.topics),
            lambda name: check.code(AclOperation.DESCRIBE, AclResource.TOPIC, name) is None,
        )
        refused = [_failed(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for name in denied]
    else:
        allowed = [
            name
            for name in check.image.topics
            if check.sees(AclOperation.DESCRIBE, AclResource.TOPIC, name)
        ]
    if not allowed:
        return DeniedAnswer(DescribeTopicPartitionsResponse(topics=refused))
    body.topics = [TopicRequest(name=name) for name in allowed]

    def amend(response: DescribeTopicPartitionsResponse) -> None:
        for one in response.topics:
            if one.topic_authorized_operations != NOT_ASKED and one.name is not None:
                one.topic_authorized_operations = check.topic_operations(one.name)
        response.topics += refused

    return amend


def _failed(name: str, code: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error_code=code, name=name)


@dataclass(slots=True, eq=False, repr=False)
class DescribeTopicPartitions(Handler):
    """Serves DescribeTopicPartitions."""

    api = Api(
        DescribeTopicPartitionsRequest,
        DescribeTopicPartitionsResponse,
        Versions(0, 0),
        needs=_needs,
        # Names of topics that the client may not DESCRIBE take the most time.
        fewer_elements_max=20_000,
        on_error=lambda body, code, _message: DescribeTopicPartitionsResponse(
            topics=[_failed(topic.name, code) for topic in body.topics]
        ),
    )

    view: ClusterView
    settings: BrokerSettings

    def handle(
        self, _request: RequestContext, body: DescribeTopicPartitionsRequest
    ) -> DescribeTopicPartitionsResponse:
        """Return one page, beginning at the cursor."""
        _check(body)
        image = self.view.image
        limit = min(
            body.response_partition_limit, self.settings.integer("max.request.partition.size.limit")
        )
        response = DescribeTopicPartitionsResponse()
        for name, first in _from_cursor(body, image):
            topic = image.topic(name)
            if topic is None:
                response.topics.append(_missing(name))
                continue
            if limit == 0:
                response.next_cursor = Cursor(topic_name=name, partition_index=first)
                break
            page = topic.partitions[first : first + limit]
            response.topics.append(_known(topic, first, page, image))
            limit -= len(page)
            if first + len(page) < len(topic.partitions):
                response.next_cursor = Cursor(topic_name=name, partition_index=first + len(page))
                break
        return response


def _check(body: DescribeTopicPartitionsRequest) -> None:
    if body.response_partition_limit <= 0:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"The limit of partitions must be positive, not {body.response_partition_limit}",
        )
    if body.cursor is not None and body.cursor.partition_index < 0:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            "DescribeTopicPartitionsRequest cursor partition must be valid: "
            f"{body.cursor.partition_index}",
        )


def _from_cursor(
    body: DescribeTopicPartitionsRequest, image: ClusterImage
) -> Iterator[tuple[str, int]]:
    """Return (topic, first partition) for each topic that follows the cursor."""
    asked = {topic.name for topic in body.topics}
    names = sorted(asked or image.topics)
    cursor: Cursor | None = body.cursor
    for name in names:
        if cursor is None or name > cursor.topic_name:
            yield name, 0
        elif name == cursor.topic_name:
            topic = image.topic(name)
            if topic is None or cursor.partition_index < len(topic.partitions):
                yield name, cursor.partition_index


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check_topic_name(name)
    except OttlaError as error:
        code = error.code
    return DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _known(
    topic: TopicImage, first: int, page: tuple[PartitionImage, ...], image: ClusterImage
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=[
            _partition(first + place, partition, image) for place, partition in enumerate(page)
        ],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partition(
    index: int, partition: PartitionImage, image: ClusterImage
) -> DescribeTopicPartitionsResponsePartition:
    has_leader = partition.leader in image.brokers
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=partition.leader if has_leader else -1,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=[b for b in partition.replicas if b not in image.brokers],
    )
