"""LeaveGroup (key 13): remove members from a group.

From version 3 on a list of members, static ones by instance id (KIP-345); 4 is flexible, 5 adds a
reason (KIP-800).
"""

from ottla.wire.notation import Message, array, int16, int32, string


class MemberIdentity(Message):
    """An element of `LeaveGroupRequest.members`."""

    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+")
    reason: str | None = string("5+", nullable="5+", ignorable=True)


class LeaveGroupRequest(Message, api_key=13, versions="0-5", flexible="4+"):
    """A LeaveGroup request."""

    group_id: str = string()
    member_id: str = string("0-2")
    members: list[MemberIdentity] = array(MemberIdentity, "3+")


class MemberResponse(Message):
    """An element of `LeaveGroupResponse.members`."""

    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+")
    error_code: int = int16("3+")


class LeaveGroupResponse(Message, api_key=13, versions="0-5", flexible="4+"):
    """A LeaveGroup response."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    members: list[MemberResponse] = array(MemberResponse, "3+")
