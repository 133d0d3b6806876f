"""The answer to ShareGroupDescribe."""

from ottla.base.errors import ErrorCode
from ottla.group.model.share_group import ShareGroup
from ottla.group.share.assignor import NAME
from ottla.group.values.shares import NOTHING
from ottla.group.values.topics import TopicsView, named_topics
from ottla.wire.messages.consumer_groups import (
    DescribedAssignment,
    DescribedShareGroup,
    DescribedTopicPartitions,
    ShareGroupMember,
)


def describe(group: ShareGroup, topics: TopicsView) -> DescribedShareGroup:
    """The group with its members and their assignments."""
    return DescribedShareGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=NAME,
        members=[_member(group, member_id, topics) for member_id in sorted(group.members)],
    )


def not_found(group_id: str, *, is_other: bool) -> DescribedShareGroup:
    """The answer for a group that does not exist or is of another type."""
    words = "is not a share group" if is_other else "not found"
    return DescribedShareGroup(
        group_id=group_id,
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=f"Group {group_id} {words}.",
    )


def _member(group: ShareGroup, member_id: str, topics: TopicsView) -> ShareGroupMember:
    metadata = group.members[member_id]
    current = group.current.get(member_id)
    assigned = NOTHING if current is None else current.assigned
    return ShareGroupMember(
        member_id=member_id,
        rack_id=metadata.rack_id,
        member_epoch=0 if current is None else current.epoch,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        subscribed_topic_names=list(metadata.topic_names),
        assignment=DescribedAssignment(
            topic_partitions=named_topics(assigned, topics, DescribedTopicPartitions)
        ),
    )
