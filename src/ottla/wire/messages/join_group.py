"""JoinGroup (key 11): join a group and wait for its next generation.

Version 1 adds the rebalance timeout; from 4 on a new member first gets MEMBER_ID_REQUIRED with its
id and must join again (KIP-394); 5 adds static members (KIP-345), 6 is flexible, 7 adds the
protocol type, 8 adds a reason (KIP-800), 9 lets a static leader keep the assignment (KIP-814).
"""

from ottla.wire.notation import Message, array, binary, boolean, int16, int32, string


class JoinGroupRequestProtocol(Message):
    """An element of `JoinGroupRequest.protocols`."""

    name: str = string()
    metadata: bytes = binary()


class JoinGroupRequest(Message, api_key=11, versions="0-9", flexible="6+"):
    """A JoinGroup request."""

    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string()
    group_instance_id: str | None = string("5+", nullable="5+")
    protocol_type: str = string()
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = string("8+", nullable="8+", ignorable=True)


class JoinGroupResponseMember(Message):
    """An element of `JoinGroupResponse.members`."""

    member_id: str = string()
    group_instance_id: str | None = string("5+", nullable="5+", ignorable=True)
    metadata: bytes = binary()


class JoinGroupResponse(Message, api_key=11, versions="0-9", flexible="6+"):
    """A JoinGroup response."""

    throttle_time_ms: int = int32("2+", ignorable=True)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string("7+", nullable="7+", ignorable=True)
    protocol_name: str | None = string(nullable="7+")
    leader: str = string()
    skip_assignment: bool = boolean("9+")
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)
