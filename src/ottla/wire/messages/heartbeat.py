"""Heartbeat (key 12): keep a member in its group; the answer announces a rebalance.

Version 3 adds static members (KIP-345), 4 is flexible.
"""

from ottla.wire.notation import Message, int16, int32, string


class HeartbeatRequest(Message, api_key=12, versions="0-4", flexible="4+"):
    """A Heartbeat request."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+")


class HeartbeatResponse(Message, api_key=12, versions="0-4", flexible="4+"):
    """A Heartbeat response."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
