"""DeleteGroups (key 42): delete groups without members.

Version 2 is flexible.
"""

from ottla.wire.notation import Message, array, int16, int32, string


class DeleteGroupsRequest(Message, api_key=42, versions="0-2", flexible="2+"):
    """A DeleteGroups request."""

    groups_names: list[str] = array(string)


class DeletableGroupResult(Message):
    """An element of `DeleteGroupsResponse.results`."""

    group_id: str = string()
    error_code: int = int16()


class DeleteGroupsResponse(Message, api_key=42, versions="0-2", flexible="2+"):
    """A DeleteGroups response."""

    throttle_time_ms: int = int32()
    results: list[DeletableGroupResult] = array(DeletableGroupResult)
