"""FindCoordinator (key 10): find the coordinator of a group, transactional id or share partition.

Version 1 adds transactional ids (key type 1), 3 is flexible, 4 adds fields for many keys (KIP-699),
6 adds share partitions (key type 2, KIP-932).
"""

from ottla.wire.notation import Message, array, int8, int16, int32, string


class FindCoordinatorRequest(Message, api_key=10, versions="0-6", flexible="3+"):
    """A FindCoordinator request."""

    key: str = string("0-3")
    key_type: int = int8("1+")
    coordinator_keys: list[str] = array(string, "4+")


class Coordinator(Message):
    """An element of `FindCoordinatorResponse.coordinators`."""

    key: str = string("4+")
    node_id: int = int32("4+")
    host: str = string("4+")
    port: int = int32("4+")
    error_code: int = int16("4+")
    error_message: str | None = string("4+", nullable="4+", ignorable=True)


class FindCoordinatorResponse(Message, api_key=10, versions="0-6", flexible="3+"):
    """A FindCoordinator response."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0-3")
    error_message: str | None = string("1-3", nullable="1-3", ignorable=True)
    node_id: int = int32("0-3")
    host: str = string("0-3")
    port: int = int32("0-3")
    coordinators: list[Coordinator] = array(Coordinator, "4+")
