"""The check of DescribeShareGroupOffsets: DESCRIBE on each group and on each topic."""

from ottla.base.errors import ErrorCode
from ottla.base.ids import NO_TOPIC_ID
from ottla.broker.requests.check import MESSAGES, RequestCheck
from ottla.broker.requests.needs import Amend, DeniedAnswer, Guard, divided, each, named
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)

_TOPIC, _DESCRIBE = AclResource.TOPIC, AclOperation.DESCRIBE
_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED

_groups: Guard[DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse] = each(
    lambda body: body.groups,
    lambda response: response.groups,
    named(_DESCRIBE, AclResource.GROUP, lambda group: group.group_id),
)


def describe_share_group_offsets(
    check: RequestCheck[DescribeShareGroupOffsetsRequest],
) -> Amend[DescribeShareGroupOffsetsResponse] | DeniedAnswer:
    """Check DESCRIBE on each group and each topic; a request for all topics gets no hidden ones."""
    body = check.body
    others = _groups(check)
    if isinstance(others, DeniedAnswer):
        return others
    # By position, since a request may name a group twice. None stands for a request for all topics.
    refused: list[list[DescribeShareGroupOffsetsResponseTopic] | None] = []
    served: list[DescribeShareGroupOffsetsRequestGroup] = []
    unserved: list[DescribeShareGroupOffsetsResponseGroup] = []
    for group in body.groups:
        hidden = None if group.topics is None else _take_denied(check, group)
        if hidden and not group.topics:
            # As in Kafka, a group without any permitted topic is not looked up.
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
        return DeniedAnswer(DescribeShareGroupOffsetsResponse(groups=unserved))

    def amend(response: DescribeShareGroupOffsetsResponse) -> None:
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
    check: RequestCheck[DescribeShareGroupOffsetsRequest],
    group: DescribeShareGroupOffsetsRequestGroup,
) -> list[DescribeShareGroupOffsetsResponseTopic]:
    """Keep only the topics that the client may DESCRIBE; return the answers for the others."""
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
