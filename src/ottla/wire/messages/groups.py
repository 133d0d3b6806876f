"""Messages to list, describe and delete groups."""

from ottla.wire.notation import Message, array, binary, boolean, int16, int32, string


class ListGroupsRequest(Message, api_key=16, versions="0-5", flexible="3+"):
    """ListGroups (key 16): list the groups that a broker coordinates.

    Version 3 is flexible, 4 filters by state (KIP-518), 5 by type (KIP-848).
    """

    states_filter: list[str] = array(string, "4+")
    types_filter: list[str] = array(string, "5+")


class ListedGroup(Message):
    """An element of `ListGroupsResponse.groups`."""

    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string("4+", ignorable=True)
    group_type: str = string("5+", ignorable=True)


class ListGroupsResponse(Message, api_key=16, versions="0-5", flexible="3+"):
    """A ListGroups response."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    groups: list[ListedGroup] = array(ListedGroup)


class DescribeGroupsRequest(Message, api_key=15, versions="0-6", flexible="5+"):
    """DescribeGroups (key 15): describe classic groups and their members.

    Version 3 adds authorized operations (KIP-430), 4 adds static members, 5 is flexible. For an
    unknown group, version 6 returns GROUP_ID_NOT_FOUND with an error message, and earlier versions
    return the state Dead (KIP-1043).
    """

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


class DeleteGroupsRequest(Message, api_key=42, versions="0-2", flexible="2+"):
    """DeleteGroups (key 42): delete groups without members.

    Version 2 is flexible.
    """

    groups_names: list[str] = array(string)


class DeletableGroupResult(Message):
    """An element of `DeleteGroupsResponse.results`."""

    group_id: str = string()
    error_code: int = int16()


class DeleteGroupsResponse(Message, api_key=42, versions="0-2", flexible="2+"):
    """A DeleteGroups response."""

    throttle_time_ms: int = int32()
    results: list[DeletableGroupResult] = array(DeletableGroupResult)
