"""What members and administrators of share groups need."""

from typing import Any

from ottla.base.errors import ErrorCode
from ottla.base.ids import NO_TOPIC_ID
from ottla.broker.access.check import MESSAGES, RequestCheck
from ottla.broker.access.guards import Amend, DeniedAnswer, divided, each
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from ottla.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsResponseTopic
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from ottla.wire.messages.share_acknowledge import PartitionData, ShareAcknowledgeTopicResponse
from ottla.wire.messages.share_fetch import ShareFetchRequest

_GROUP, _TOPIC, _READ = AclResource.GROUP, AclResource.TOPIC, AclOperation.READ
_DESCRIBE = AclOperation.DESCRIBE
_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def share_fetch(check: RequestCheck) -> None:
    """READ on the group; the session checks READ on its topics at each fetch.

    What is acknowledged in a topic that the client may no longer READ is not taken in.
    """
    body: ShareFetchRequest = check.body
    check.require(_READ, _GROUP, body.group_id or "")
    for asked in body.topics:
        if check.topic_code(_READ, _Named(asked.topic_id)) is not None:
            for partition in asked.partitions:
                partition.acknowledgement_batches = []


class _Named:
    """A topic that is named by its id."""

    __slots__ = ("name", "topic_id")

    def __init__(self, topic_id: Any) -> None:
        self.topic_id = topic_id
        self.name = ""


def _acknowledge_refused(asked: Any, code: ErrorCode) -> ShareAcknowledgeTopicResponse:
    return ShareAcknowledgeTopicResponse(
        topic_id=asked.topic_id,
        partitions=[
            PartitionData(
                partition_index=partition.partition_index,
                error_code=code,
                error_message=MESSAGES[code],
            )
            for partition in asked.partitions
        ],
    )


_acknowledged = each(
    "topics",
    "responses",
    lambda check, asked: check.topic_code(_READ, _Named(asked.topic_id)),
    _acknowledge_refused,
    always_served=True,
)


def share_acknowledge(check: RequestCheck) -> Amend | DeniedAnswer | None:
    """READ on the group and on each topic."""
    check.require(_READ, _GROUP, check.body.group_id or "")
    return _acknowledged(check)


def refuse_alter(asked: Any, code: ErrorCode) -> AlterShareGroupOffsetsResponseTopic:
    """A topic of AlterShareGroupOffsets that the client may not READ."""
    return AlterShareGroupOffsetsResponseTopic(
        topic_name=asked.topic_name,
        topic_id=NO_TOPIC_ID,
        partitions=[
            AlterShareGroupOffsetsResponsePartition(
                partition_index=partition.partition_index,
                error_code=code,
                error_message=MESSAGES[code],
            )
            for partition in asked.partitions
        ],
    )


def refuse_delete(asked: Any, code: ErrorCode) -> DeleteShareGroupOffsetsResponseTopic:
    """A topic of DeleteShareGroupOffsets that the client may not READ."""
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=asked.topic_name,
        topic_id=NO_TOPIC_ID,
        error_code=code,
        error_message=MESSAGES[code],
    )


_groups = each(
    "groups",
    "groups",
    lambda check, group: check.code(_DESCRIBE, _GROUP, group.group_id),
)


def describe_share_group_offsets(check: RequestCheck) -> Amend | DeniedAnswer:
    """DESCRIBE on each group and each topic; a list of all topics leaves hidden ones out."""
    body: DescribeShareGroupOffsetsRequest = check.body
    others = _groups(check)
    if isinstance(others, DeniedAnswer):
        return others
    # By place, since a request may name a group twice: None for a list of all topics.
    refused: list[list[DescribeShareGroupOffsetsResponseTopic] | None] = []
    served: list[DescribeShareGroupOffsetsRequestGroup] = []
    unserved: list[DescribeShareGroupOffsetsResponseGroup] = []
    for group in body.groups:
        hidden = None if group.topics is None else _take_denied(check, group)
        if hidden and not group.topics:
            # As in Kafka, a group of which no topic may be described is not looked up.
            unserved.append(
                DescribeShareGroupOffsetsResponseGroup(
                    group_id=group.group_id, topics=hidden, error_message=None
                )
            )
        else:
            refused.append(hidden)
            served.append(group)
    body.groups = served
    if unserved and not served and others is None:
        return DeniedAnswer(check.response(groups=unserved))

    def amend(response: Any) -> None:
        for group, hidden in zip(response.groups, refused, strict=True):
            if hidden is None:
                group.topics = [
                    t for t in group.topics if check.sees(_DESCRIBE, _TOPIC, t.topic_name)
                ]
            elif not group.error_code:
                group.topics += hidden
        response.groups += unserved
        if others is not None:
            others(response)

    return amend


def _take_denied(
    check: RequestCheck, group: DescribeShareGroupOffsetsRequestGroup
) -> list[DescribeShareGroupOffsetsResponseTopic]:
    """Leave the topics in the request that the client may DESCRIBE; the answers for the others."""
    group.topics, denied = divided(
        group.topics or (),
        lambda asked: check.code(_DESCRIBE, _TOPIC, asked.topic_name) is None,
    )
    return [
        DescribeShareGroupOffsetsResponseTopic(
            topic_name=asked.topic_name,
            topic_id=NO_TOPIC_ID,
            partitions=[
                DescribeShareGroupOffsetsResponsePartition(
                    partition_index=index,
                    start_offset=-1,
                    error_code=_DENIED,
                    error_message=MESSAGES[_DENIED],
                )
                for index in asked.partitions
            ],
        )
        for asked in denied
    ]
