"""The answer to ConsumerGroupDescribe."""

from collections.abc import Collection

from ottla.base.errors import ErrorCode
from ottla.group.consumer.targets import preferred_assignor
from ottla.group.model.consumer_group import ConsumerGroup
from ottla.group.records.consumer import Current
from ottla.group.values.shares import NOTHING, Share
from ottla.group.values.topics import TopicsView, named_topics
from ottla.wire.messages.consumer_groups import (
    ConsumerGroupMember,
    DescribedAssignment,
    DescribedConsumerGroup,
    DescribedTopicPartitions,
)

_CLASSIC_MEMBER = 0
_CONSUMER_MEMBER = 1


def describe(
    group: ConsumerGroup, topics: TopicsView, assignors: Collection[str]
) -> DescribedConsumerGroup:
    """The group with the current and the target assignment of each member."""
    return DescribedConsumerGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=preferred_assignor(group, assignors),
        members=[_member(group, member_id, topics) for member_id in sorted(group.members)],
    )


def not_found(group_id: str, *, is_classic: bool) -> DescribedConsumerGroup:
    """The answer for a group that does not exist or is of the classic protocol."""
    if not group_id:
        return DescribedConsumerGroup(error_code=ErrorCode.INVALID_GROUP_ID)
    words = "is not a consumer group" if is_classic else "not found"
    return DescribedConsumerGroup(
        group_id=group_id,
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=f"Group {group_id} {words}.",
    )


def _member(group: ConsumerGroup, member_id: str, topics: TopicsView) -> ConsumerGroupMember:
    metadata = group.members[member_id]
    current = group.current.get(member_id)
    return ConsumerGroupMember(
        member_id=member_id,
        instance_id=metadata.instance_id,
        rack_id=metadata.rack_id,
        member_epoch=0 if current is None else current.epoch,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        subscribed_topic_names=list(metadata.topic_names),
        subscribed_topic_regex=metadata.topic_regex or "",
        assignment=_assignment(_held(current), topics),
        target_assignment=_assignment(group.target_of(member_id), topics),
        member_type=_CONSUMER_MEMBER if metadata.classic is None else _CLASSIC_MEMBER,
    )


def _held(current: Current | None) -> Share:
    """A member's partitions, those it has yet to revoke included, as it may still read them."""
    return NOTHING if current is None else current.assigned | current.revoking


def _assignment(share: Share, topics: TopicsView) -> DescribedAssignment:
    return DescribedAssignment(
        topic_partitions=named_topics(share, topics, DescribedTopicPartitions)
    )
