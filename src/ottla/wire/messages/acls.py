"""Messages to create, delete and list ACLs."""

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
    """CreateAcls (key 30): add ACLs.

    Version 2 is flexible, 3 adds users as resources (KIP-373).
    """

    creations: list[AclCreation] = array(AclCreation)


class AclCreationResult(Message):
    """An element of `CreateAclsResponse.results`."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class CreateAclsResponse(Message, api_key=30, versions="1-3", flexible="2+"):
    """A CreateAcls response."""

    throttle_time_ms: int = int32()
    results: list[AclCreationResult] = array(AclCreationResult)


class DeleteAclsFilter(Message):
    """An element of `DeleteAclsRequest.filters`."""

    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable="0+")
    pattern_type_filter: int = int8("1+", default=3)
    principal_filter: str | None = string(nullable="0+")
    host_filter: str | None = string(nullable="0+")
    operation: int = int8()
    permission_type: int = int8()


class DeleteAclsRequest(Message, api_key=31, versions="1-3", flexible="2+"):
    """DeleteAcls (key 31): delete the ACLs that match filters, and return them.

    Version 2 is flexible, 3 adds users as resources (KIP-373).
    """

    filters: list[DeleteAclsFilter] = array(DeleteAclsFilter)


class DeleteAclsMatchingAcl(Message):
    """An element of `DeleteAclsFilterResult.matching_acls`."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8("1+", default=3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


class DeleteAclsFilterResult(Message):
    """An element of `DeleteAclsResponse.filter_results`."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    matching_acls: list[DeleteAclsMatchingAcl] = array(DeleteAclsMatchingAcl)


class DeleteAclsResponse(Message, api_key=31, versions="1-3", flexible="2+"):
    """A DeleteAcls response."""

    throttle_time_ms: int = int32()
    filter_results: list[DeleteAclsFilterResult] = array(DeleteAclsFilterResult)


class DescribeAclsRequest(Message, api_key=29, versions="1-3", flexible="2+"):
    """DescribeAcls (key 29): list the ACLs that match a filter.

    Version 2 is flexible, 3 adds users as resources (KIP-373).
    """

    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable="0+")
    pattern_type_filter: int = int8("1+", default=3)
    principal_filter: str | None = string(nullable="0+")
    host_filter: str | None = string(nullable="0+")
    operation: int = int8()
    permission_type: int = int8()


class AclDescription(Message):
    """An element of `DescribeAclsResource.acls`."""

    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


class DescribeAclsResource(Message):
    """An element of `DescribeAclsResponse.resources`."""

    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8("1+", default=3)
    acls: list[AclDescription] = array(AclDescription)


class DescribeAclsResponse(Message, api_key=29, versions="1-3", flexible="2+"):
    """A DescribeAcls response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resources: list[DescribeAclsResource] = array(DescribeAclsResource)
