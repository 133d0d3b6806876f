"""DescribeGroups (key 15): classic groups and their members.

Version 3 adds authorized operations (KIP-430), 4 adds static members, 5 is flexible, 6 adds an
error message and answers GROUP_ID_NOT_FOUND instead of a group in state Dead (KIP-1043).
"""

from ottla.wire.notation import Message, array, binary, boolean, int16, int32, string


class DescribeGroupsRequest(Message, api_key=15, versions="0-6", flexible="5+"):
    """A DescribeGroups request."""

    groups: list[str] = array(string)
    include_authorized_operations: bool = boolean("3+")


class DescribedGroupMember(Message):
    """An element of `DescribedGroup.members`."""

    member_id: str = string()
    group_instance_id: str | None = string("4+", nullable="4+", ignorable=True)
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = binary()
    member_assignment: bytes = binary()


class DescribedGroup(Message):
    """An element of `DescribeGroupsResponse.groups`."""

    error_code: int = int16()
    error_message: str | None = string("6+", nullable="6+")
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    authorized_operations: int = int32("3+", default=-2147483648)


class DescribeGroupsResponse(Message, api_key=15, versions="0-6", flexible="5+"):
    """A DescribeGroups response."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    groups: list[DescribedGroup] = array(DescribedGroup)
