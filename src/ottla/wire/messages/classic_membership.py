"""Messages of members of classic groups: join, sync, heartbeat and leave."""

from ottla.wire.notation import Message, array, binary, boolean, int16, int32, string


class JoinGroupRequestProtocol(Message):
    """An element of `JoinGroupRequest.protocols`."""

    name: str = string()
    metadata: bytes = binary()


class JoinGroupRequest(Message, api_key=11, versions="0-9", flexible="6+"):
    """JoinGroup (key 11): join a group and wait for its next generation.

    Version 1 adds the rebalance timeout. From 4 on a new member first gets its id with the error
    MEMBER_ID_REQUIRED, and must join again (KIP-394). Version 5 adds static members (KIP-345), 6 is
    flexible, 7 adds the protocol type, 8 adds a reason (KIP-800), 9 lets a static leader keep the
    assignment (KIP-814).
    """

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


class SyncGroupRequestAssignment(Message):
    """An element of `SyncGroupRequest.assignments`."""

    member_id: str = string()
    assignment: bytes = binary()


class SyncGroupRequest(Message, api_key=14, versions="0-5", flexible="4+"):
    """SyncGroup (key 14): the leader sends the assignment; each member gets its part.

    Version 3 adds static members (KIP-345), 4 is flexible, 5 adds the protocol type and name
    (KIP-559).
    """

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+")
    protocol_type: str | None = string("5+", nullable="5+", ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)


class SyncGroupResponse(Message, api_key=14, versions="0-5", flexible="4+"):
    """A SyncGroup response."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    protocol_type: str | None = string("5+", nullable="5+", ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", ignorable=True)
    assignment: bytes = binary()


class HeartbeatRequest(Message, api_key=12, versions="0-4", flexible="4+"):
    """Heartbeat (key 12): keep a member in its group; the answer announces a rebalance.

    Version 3 adds static members (KIP-345), 4 is flexible.
    """

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+")


class HeartbeatResponse(Message, api_key=12, versions="0-4", flexible="4+"):
    """A Heartbeat response."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()


class MemberIdentity(Message):
    """An element of `LeaveGroupRequest.members`."""

    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+")
    reason: str | None = string("5+", nullable="5+", ignorable=True)


class LeaveGroupRequest(Message, api_key=13, versions="0-5", flexible="4+"):
    """LeaveGroup (key 13): remove members from a group.

    From version 3 on a request has a list of members, static ones by instance id (KIP-345). Version
    4 is flexible, 5 adds a reason (KIP-800).
    """

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
