"""The answers to DescribeGroups, ConsumerGroupDescribe, ShareGroupDescribe and ListGroups."""

from collections.abc import Collection, Sequence

from ottla.base.errors import ErrorCode
from ottla.group.consumer.assignors import SIMPLE
from ottla.group.consumer.targets import preferred_assignor
from ottla.group.model.consumer_group import ConsumerGroup
from ottla.group.model.group import AnyGroup, Group, GroupState
from ottla.group.model.share_group import ShareGroup
from ottla.group.values.member import CONSUMER_PROTOCOL_TYPE
from ottla.group.values.topics import NOTHING, Share, TopicsView, named_topics
from ottla.wire.messages.consumer_groups import (
    ConsumerGroupMember,
    DescribedAssignment,
    DescribedConsumerGroup,
    DescribedShareGroup,
    DescribedTopicPartitions,
    ShareGroupMember,
)
from ottla.wire.messages.groups import DescribedGroup, DescribedGroupMember, ListedGroup

CLASSIC = "classic"
CONSUMER = "consumer"
SHARE = "share"

_CLASSIC_MEMBER = 0
_CONSUMER_MEMBER = 1

# From this version on an unknown group is an error; before, it was shown as dead (KIP-1043).
_GROUP_NOT_FOUND_FROM = 6


def describe_classic_group(
    group_id: str, group: Group | None, version: int, *, is_other: bool
) -> DescribedGroup:
    """Describe a classic group. As in Kafka, members' metadata is shown only if it is stable.

    If `group` is None, `is_other` says whether a group of another type has the id.
    """
    if group is None:
        if version < _GROUP_NOT_FOUND_FROM:
            return DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
        return DescribedGroup(
            group_id=group_id,
            group_state=GroupState.DEAD.value,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=_not_found(group_id, CLASSIC, is_other=is_other),
        )
    stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def describe_consumer_group(
    group_id: str,
    group: ConsumerGroup | None,
    topics: TopicsView,
    assignors: Collection[str],
    *,
    is_other: bool,
) -> DescribedConsumerGroup:
    """Describe a group with the current and the target assignment of each member."""
    if group is None and not group_id:
        return DescribedConsumerGroup(error_code=ErrorCode.INVALID_GROUP_ID)
    if group is None:
        return DescribedConsumerGroup(
            group_id=group_id,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=_not_found(group_id, CONSUMER, is_other=is_other),
        )

    members = []
    for member_id, metadata in sorted(group.members.items()):
        current = group.current.get(member_id)
        # Partitions that it has yet to revoke are included, as it may still read them.
        held = NOTHING if current is None else current.assigned | current.revoking
        members.append(
            ConsumerGroupMember(
                member_id=member_id,
                instance_id=metadata.instance_id,
                rack_id=metadata.rack_id,
                member_epoch=0 if current is None else current.epoch,
                client_id=metadata.client_id,
                client_host=metadata.client_host,
                subscribed_topic_names=list(metadata.topic_names),
                subscribed_topic_regex=metadata.topic_regex or "",
                assignment=_assignment(held, topics),
                target_assignment=_assignment(group.target_of(member_id), topics),
                member_type=_CONSUMER_MEMBER if metadata.classic is None else _CLASSIC_MEMBER,
            )
        )
    return DescribedConsumerGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=preferred_assignor(group, assignors),
        members=members,
    )


def describe_share_group(
    group_id: str, group: ShareGroup | None, topics: TopicsView, *, is_other: bool
) -> DescribedShareGroup:
    """Describe a share group with its members and their assignments."""
    if group is None:
        return DescribedShareGroup(
            group_id=group_id,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=_not_found(group_id, SHARE, is_other=is_other),
        )
    members = []
    for member_id, metadata in sorted(group.members.items()):
        current = group.current.get(member_id)
        assigned = NOTHING if current is None else current.assigned
        members.append(
            ShareGroupMember(
                member_id=member_id,
                rack_id=metadata.rack_id,
                member_epoch=0 if current is None else current.epoch,
                client_id=metadata.client_id,
                client_host=metadata.client_host,
                subscribed_topic_names=list(metadata.topic_names),
                assignment=_assignment(assigned, topics),
            )
        )
    return DescribedShareGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=SIMPLE,
        members=members,
    )


def _assignment(share: Share, topics: TopicsView) -> DescribedAssignment:
    return DescribedAssignment(
        topic_partitions=named_topics(share, topics, DescribedTopicPartitions)
    )


def _not_found(group_id: str, kind: str, *, is_other: bool) -> str:
    return f"Group {group_id} {f'is not a {kind} group' if is_other else 'not found'}."


def is_listed(group: AnyGroup | ShareGroup, states: Sequence[str], types: Sequence[str]) -> bool:
    """Whether the group passes the filters. Case is ignored; an empty filter passes all groups."""
    if states and group.state.value.lower() not in {state.lower() for state in states}:
        return False
    return not types or _type(group) in {each.lower() for each in types}


def listed(group: AnyGroup | ShareGroup) -> ListedGroup:
    """Return the group's entry in a ListGroups response."""
    if isinstance(group, ShareGroup):
        protocol_type: str | None = SHARE
    else:
        protocol_type = group.protocol_type if isinstance(group, Group) else CONSUMER_PROTOCOL_TYPE
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=protocol_type or "",
        group_state=group.state.value,
        group_type=_type(group),
    )


def _type(group: AnyGroup | ShareGroup) -> str:
    if isinstance(group, ShareGroup):
        return SHARE
    return CONSUMER if isinstance(group, ConsumerGroup) else CLASSIC
