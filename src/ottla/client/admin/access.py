"""Access control lists (KIP-140, KIP-290), and quotas of clients (KIP-546)."""

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.client.admin.calls import Calls
from ottla.client.common.arguments import checks_calls
from ottla.client.common.errors import check
from ottla.metadata.quota_entity import QuotaEntity, entity_parts, parse_entity
from ottla.security.acl import Acl, AclFilter, ResourcePattern
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
from ottla.wire.messages.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)


@checks_calls()
class AccessRules:
    """`admin.acls`: rules that allow or deny operations to principals."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def find(self, wanted: AclFilter = AclFilter()) -> list[Acl]:  # noqa: B008  # A value.
        """Return the ACLs that match a filter; without a filter, all. Raises OttlaError."""
        request = DescribeAclsRequest(**_fields(wanted))

        def read(answer: DescribeAclsResponse) -> list[Acl]:
            check(answer.error_code, "describe ACLs", answer.error_message)
            return [_acl(_pattern(one), acl) for one in answer.resources for acl in one.acls]

        return await self._calls.ask_controller(request, DescribeAclsResponse, read)

    async def create(self, acls: Iterable[Acl]) -> None:
        """Add ACLs; existing ones are left unchanged.

        Raises OttlaError for the first invalid ACL.
        """
        creations = [
            AclCreation(
                resource_type=acl.pattern.resource_type,
                resource_name=acl.pattern.name,
                resource_pattern_type=acl.pattern.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in acls
        ]

        def read(answer: CreateAclsResponse) -> None:
            for result in answer.results:
                check(result.error_code, "add an ACL", result.error_message)

        await self._calls.ask_controller(
            CreateAclsRequest(creations=creations), CreateAclsResponse, read
        )

    async def delete(self, wanted: AclFilter) -> list[Acl]:
        """Delete the ACLs that match a filter, and return them. Raises OttlaError."""
        request = DeleteAclsRequest(filters=[DeleteAclsFilter(**_fields(wanted))])

        def read(answer: DeleteAclsResponse) -> list[Acl]:
            (result,) = answer.filter_results
            check(result.error_code, "delete ACLs", result.error_message)
            return [_acl(_pattern(acl), acl) for acl in result.matching_acls]

        return await self._calls.ask_controller(request, DeleteAclsResponse, read)


def _fields(wanted: AclFilter) -> dict[str, Any]:
    """Return the fields of a filter for a request."""
    return {
        "resource_type_filter": wanted.resource_type,
        "resource_name_filter": wanted.name,
        "pattern_type_filter": wanted.pattern_type,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission,
    }


def _pattern(answer: DescribeAclsResource | DeleteAclsMatchingAcl) -> ResourcePattern:
    return ResourcePattern(
        AclResource(answer.resource_type), answer.resource_name, PatternType(answer.pattern_type)
    )


def _acl(pattern: ResourcePattern, answer: AclDescription | DeleteAclsMatchingAcl) -> Acl:
    return Acl(
        pattern,
        answer.principal,
        answer.host,
        AclOperation(answer.operation),
        Permission(answer.permission_type),
    )


Limits = dict[str, float]


@checks_calls()
class Quotas:
    """`admin.quotas`: the quotas of users, client ids and addresses."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def all(self) -> dict[QuotaEntity, Limits]:
        """Return all quotas that are set: limits by Kafka's key, per entity. Raises OttlaError."""

        def read(answer: DescribeClientQuotasResponse) -> dict[QuotaEntity, Limits]:
            check(answer.error_code, "describe quotas", answer.error_message)
            return {
                parse_entity([(part.entity_type, part.entity_name) for part in entry.entity]): {
                    value.key: value.value for value in entry.values
                }
                for entry in answer.entries or ()
            }

        return await self._calls.ask_controller(
            DescribeClientQuotasRequest(), DescribeClientQuotasResponse, read
        )

    async def alter(
        self,
        entity: QuotaEntity,
        limits: Mapping[str, float | None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Set limits of one entity, by Kafka's key (`producer_byte_rate`, bytes per second).

        None removes a limit; other keys are unchanged. With `validate_only` nothing is changed.
        Raises OttlaError (INVALID_REQUEST).
        """
        request = AlterClientQuotasRequest(
            entries=[
                EntryData(
                    entity=[
                        EntityData(entity_type=kind, entity_name=name)
                        for kind, name in entity_parts(entity)
                    ],
                    ops=[
                        OpData(key=key, value=value or 0.0, remove=value is None)
                        for key, value in limits.items()
                    ],
                )
            ],
            validate_only=validate_only,
        )

        def read(answer: AlterClientQuotasResponse) -> None:
            for entry in answer.entries:
                check(entry.error_code, f"alter the quotas of {entity}", entry.error_message)

        await self._calls.ask_controller(request, AlterClientQuotasResponse, read)
