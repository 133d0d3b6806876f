"""CreateAcls (key 30): add ACLs.

Version 2 is flexible, 3 adds users as resources (KIP-373).
"""

from ottla.wire.notation import Message, array, int8, int16, int32, string


class AclCreation(Message):
    """An element of `CreateAclsRequest.creations`."""

    resource_type: int = int8()
    resource_name: str = string()
    resource_pattern_type: int = int8("1+", default=3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


class CreateAclsRequest(Message, api_key=30, versions="1-3", flexible="2+"):
    """A CreateAcls request."""

    creations: list[AclCreation] = array(AclCreation)


class AclCreationResult(Message):
    """An element of `CreateAclsResponse.results`."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class CreateAclsResponse(Message, api_key=30, versions="1-3", flexible="2+"):
    """A CreateAcls response."""

    throttle_time_ms: int = int32()
    results: list[AclCreationResult] = array(AclCreationResult)
