"""The checks of OffsetFetch and DescribeShareGroupOffsets: DESCRIBE on groups and on topics.

A request for all topics is answered without the topics that the client may not DESCRIBE. If a
request names such a topic, the answer has an error for it.
"""

from typing import TypeVar

from ottla.base.errors import ErrorCode
from ottla.base.ids import NO_TOPIC_ID
from ottla.broker.requests.check import MESSAGES, RequestCheck
from ottla.broker.requests.needs import Amend, DeniedAnswer, Guard, divided, each, named
from ottla.group.offsets.stored_offsets import NO_OFFSET
from ottla.security.names import AclOperation, AclResource
from ottla.wire.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from ottla.wire.messages.share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)

P = TypeVar("P")

_DESCRIBE = AclOperation.DESCRIBE
_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_MANY_GROUPS_FROM = 8

_fetch_groups: Guard[OffsetFetchRequest, OffsetFetchResponse] = each(
    lambda body: body.groups,
    lambda response: response.groups,
    named(_DESCRIBE, AclResource.GROUP, lambda group: group.group_id),
)


def offset_fetch(
    check: RequestCheck[OffsetFetchRequest],
) -> Amend[OffsetFetchResponse] | DeniedAnswer:
    """Check DESCRIBE on each group and each topic of the request.

    A request before version 8 has the topics of its only group, as its response has.
    """
    body = check.body
    if check.version < _MANY_GROUPS_FROM:
        check.require(_DESCRIBE, AclResource.GROUP, body.group_id)
        return _topics_guard(check, body)
    others = _fetch_groups(check)
    if isinstance(others, DeniedAnswer):
        return others
    # In the order of the groups, because a request may name a group twice.
    guards = [_topics_guard(check, group) for group in body.groups]

    def amend(response: OffsetFetchResponse) -> None:
        for group, amend_group in zip(response.groups, guards, strict=True):
            amend_group(group)
        if others is not None:
            others(response)

    return amend


def _topics_guard(
    check: RequestCheck[OffsetFetchRequest], asked: OffsetFetchRequest | OffsetFetchRequestGroup
) -> Amend[OffsetFetchResponse | OffsetFetchResponseGroup]:
    """Remove the topics of a group that the client may not DESCRIBE.

    The returned function adds their errors to the group's answer; if all topics are requested, it
    leaves them out.
    """
    refused: list[OffsetFetchResponseTopic] | None = None
    if asked.topics is not None:
        asked.topics, denied = divided(
            asked.topics,
            lambda topic: check.topic_code(_DESCRIBE, topic.topic_id, topic.name) is None,
        )
        refused = [
            OffsetFetchResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=index,
                        committed_offset=NO_OFFSET,
                        metadata="",
                        error_code=_DENIED,
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in denied
        ]

    def amend(answer: OffsetFetchResponse | OffsetFetchResponseGroup) -> None:
        if refused is None:
            answer.topics = [topic for topic in answer.topics if _sees(check, topic)]
        elif not answer.error_code:
            # As in Kafka, a group with an error has no topics in its answer.
            answer.topics += refused

    return amend


def _sees(check: RequestCheck[OffsetFetchRequest], topic: OffsetFetchResponseTopic) -> bool:
    name = topic.name or check.topic_name(topic.topic_id)
    return name is not None and check.sees(_DESCRIBE, AclResource.TOPIC, name)


_TOPIC, _DESCRIBE = AclResource.TOPIC, AclOperation.DESCRIBE

_share_groups: Guard[DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse] = each(
    lambda body: body.groups,
    lambda response: response.groups,
    named(_DESCRIBE, AclResource.GROUP, lambda group: group.group_id),
)


def describe_share_group_offsets(
    check: RequestCheck[DescribeShareGroupOffsetsRequest],
) -> Amend[DescribeShareGroupOffsetsResponse] | DeniedAnswer:
    """Check DESCRIBE on each group and each topic of the request."""
    body = check.body
    others = _share_groups(check)
    if isinstance(others, DeniedAnswer):
        return others
    # In the order of the groups, because a request may name a group twice. None means that the
    # group is asked for all topics.
    refused: list[list[DescribeShareGroupOffsetsResponseTopic] | None] = []
    served: list[DescribeShareGroupOffsetsRequestGroup] = []
    unserved: list[DescribeShareGroupOffsetsResponseGroup] = []
    for group in body.groups:
        hidden = None if group.topics is None else _share_take_denied(check, group)
        if hidden and not group.topics:
            # As in Kafka, a group is not looked up if no topic is permitted.
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


def _share_take_denied(
    check: RequestCheck[DescribeShareGroupOffsetsRequest],
    group: DescribeShareGroupOffsetsRequestGroup,
) -> list[DescribeShareGroupOffsetsResponseTopic]:
    """Remove the topics that the client may not DESCRIBE; return the answers for them."""
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
