"""SyncGroup (key 14): the leader sends the assignment; each member gets its part.

Version 3 adds static members (KIP-345), 4 is flexible, 5 adds the protocol type and name (KIP-559).
"""

from ottla.wire.notation import Message, array, binary, int16, int32, string


class SyncGroupRequestAssignment(Message):
    """An element of `SyncGroupRequest.assignments`."""

    member_id: str = string()
    assignment: bytes = binary()


class SyncGroupRequest(Message, api_key=14, versions="0-5", flexible="4+"):
    """A SyncGroup request."""

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
