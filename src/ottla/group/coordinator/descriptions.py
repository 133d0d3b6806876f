"""The answers to DescribeGroups and ListGroups."""

from collections.abc import Sequence

from ottla.base.errors import ErrorCode
from ottla.group.model.consumer_group import ConsumerGroup
from ottla.group.model.group import AnyGroup, Group, GroupState
from ottla.group.model.share_group import ShareGroup
from ottla.group.values.subscription import CONSUMER_PROTOCOL_TYPE
from ottla.wire.messages.groups import DescribedGroup, DescribedGroupMember, ListedGroup

CLASSIC = "classic"
CONSUMER = "consumer"
SHARE = "share"

# From this version on an unknown group is an error; before, it was shown as dead (KIP-1043).
_GROUP_NOT_FOUND_FROM = 6


def describe(
    group_id: str, group: Group | None, version: int, *, is_other: bool = False
) -> DescribedGroup:
    """The group as it stands. What members offer is shown of a stable group only, as in Kafka.

    `is_other`: where `group` is None, whether there is one of another type by that id.
    """
    if group is None:
        if version < _GROUP_NOT_FOUND_FROM:
            return DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
        words = "is not a classic group" if is_other else "not found"
        return DescribedGroup(
            group_id=group_id,
            group_state=GroupState.DEAD.value,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} {words}.",
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


def is_listed(group: AnyGroup | ShareGroup, states: Sequence[str], types: Sequence[str]) -> bool:
    """Whether the group passes the filters; an empty one lets all pass, case does not matter."""
    if states and group.state.value.lower() not in {state.lower() for state in states}:
        return False
    return not types or _type(group) in {each.lower() for each in types}


def listed(group: AnyGroup | ShareGroup) -> ListedGroup:
    """The group as a line of a list."""
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
