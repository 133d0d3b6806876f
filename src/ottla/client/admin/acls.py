"""Access control lists (KIP-140, KIP-290)."""

from collections.abc import Iterable
from typing import Any

from ottla.client.admin.calls import Calls
from ottla.client.common.call_check import checks_calls
from ottla.client.common.errors import check
from ottla.security.acl import Acl, AclFilter, Pattern
from ottla.security.names import AclOperation, AclResource, PatternType, Permission
from ottla.wire.messages.acls import (
    AclCreation,
    AclDescription,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilter,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


@checks_calls
class AccessRules:
    """`admin.acls`: rules that allow or deny operations to principals."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def find(self, wanted: AclFilter = AclFilter()) -> list[Acl]:  # noqa: B008  # A value.
        """Return the ACLs that match a filter; without a filter, all. Raises OttlaError."""
        request = DescribeAclsRequest(**_fields(wanted))

        async def ask() -> list[Acl]:
            broker_id = await self._calls.cluster.controller()
            answer = await self._calls.cluster.ask(broker_id, request, DescribeAclsResponse)
            check(answer.error_code, "describe ACLs", answer.error_message)
            return [_acl(_pattern(one), acl) for one in answer.resources for acl in one.acls]

        return await self._calls.retried(ask)

    async def create(self, acls: Iterable[Acl]) -> None:
        """Add ACLs; existing ones are left unchanged.

        Raises OttlaError at the first invalid one.
        """
        creations = [
            AclCreation(
                resource_type=acl.pattern.type,
                resource_name=acl.pattern.name,
                resource_pattern_type=acl.pattern.kind,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in acls
        ]

        async def ask() -> None:
            broker_id = await self._calls.cluster.controller()
            answer = await self._calls.cluster.ask(
                broker_id, CreateAclsRequest(creations=creations), CreateAclsResponse
            )
            for result in answer.results:
                check(result.error_code, "add an ACL", result.error_message)

        await self._calls.retried(ask)

    async def delete(self, wanted: AclFilter) -> list[Acl]:
        """Delete the ACLs that match a filter, and return them. Raises OttlaError."""
        request = DeleteAclsRequest(filters=[DeleteAclsFilter(**_fields(wanted))])

        async def ask() -> list[Acl]:
            broker_id = await self._calls.cluster.controller()
            answer = await self._calls.cluster.ask(broker_id, request, DeleteAclsResponse)
            (result,) = answer.filter_results
            check(result.error_code, "delete ACLs", result.error_message)
            return [_acl(_pattern(acl), acl) for acl in result.matching_acls]

        return await self._calls.retried(ask)


def _fields(wanted: AclFilter) -> dict[str, Any]:
    """Return a filter's fields as requests contain them."""
    return {
        "resource_type_filter": wanted.type,
        "resource_name_filter": wanted.name,
        "pattern_type_filter": wanted.kind,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission,
    }


def _pattern(answer: DescribeAclsResource | DeleteAclsMatchingAcl) -> Pattern:
    return Pattern(
        AclResource(answer.resource_type), answer.resource_name, PatternType(answer.pattern_type)
    )


def _acl(pattern: Pattern, answer: AclDescription | DeleteAclsMatchingAcl) -> Acl:
    return Acl(
        pattern,
        answer.principal,
        answer.host,
        AclOperation(answer.operation),
        Permission(answer.permission_type),
    )
