"""The handlers that create, delete and list ACLs."""

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.access.acls import Acls, require_acls, too_many
from ottla.broker.audit.details import acl_text
from ottla.broker.requests.auditing import AdminChange, cluster_need
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import cluster
from ottla.broker.requests.request import RequestContext
from ottla.security.acl import Acl, AclFilter, ResourcePattern, check_acl, check_filter
from ottla.security.names import AclOperation, AclResource, PatternType, Permission
from ottla.wire.messages.acls import (
    AclCreation,
    AclCreationResult,
    AclDescription,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


def _create_changes(body: CreateAclsRequest, response: CreateAclsResponse) -> Iterator[AdminChange]:
    """Return an audit event for each ACL; the answers are in the order of the request."""
    for wanted, one in zip(body.creations, response.results, strict=False):
        detail = {"added": acl_text(wanted, wanted.resource_pattern_type)}
        yield AdminChange((cluster_need(AclOperation.ALTER),), detail, one.error_code)


@dataclass(slots=True, eq=False, repr=False)
class CreateAcls(Handler):
    """CreateAcls (30), versions 1-3: adds ACLs, each independently; they apply on all brokers.

    Without an authorizer the request is refused, as in Kafka.
    """

    api = Api(
        CreateAclsRequest,
        CreateAclsResponse,
        Versions(1, 3),
        needs=cluster(AclOperation.ALTER),
        changes=_create_changes,
        on_error=lambda body, code, message: CreateAclsResponse(
            results=[_create_failed(code, message)] * len(body.creations)
        ),
    )

    acls: Acls | None

    async def handle(self, request: RequestContext, body: CreateAclsRequest) -> CreateAclsResponse:
        """Add the valid ACLs."""
        acls = require_acls(self.acls)
        too_many(len(body.creations))
        results: list[AclCreationResult] = []
        valid: list[Acl] = []
        for creation in body.creations:
            try:
                acl = _acl(creation)
                check_acl(acl)
                valid.append(acl)
                results.append(AclCreationResult(error_message=None))
            except OttlaError as error:
                results.append(_create_failed(error.code, error.message))
                _log_refusal(request, error)
        await acls.create(valid)
        return CreateAclsResponse(results=results)


def _acl(creation: AclCreation) -> Acl:
    try:
        return Acl(
            ResourcePattern(
                AclResource(creation.resource_type),
                creation.resource_name,
                PatternType(creation.resource_pattern_type),
            ),
            creation.principal,
            creation.host,
            AclOperation(creation.operation),
            Permission(creation.permission_type),
        )
    except ValueError as error:
        raise OttlaError(ErrorCode.INVALID_REQUEST, f"The ACL holds an unknown {error}") from error


def _log_refusal(request: RequestContext, error: OttlaError) -> None:
    """Log, at most once in ten minutes per address, that ACLs were refused and so do not apply."""
    client = request.connection
    client.refusals.log(
        (client.peer_host, "ACL"),
        lambda: (
            f"refused an ACL of {client.principal} at {client.peer_host}:{client.peer_port}:"
            f" {error.message}"
        ),
    )


def _create_failed(code: ErrorCode, message: str | None) -> AclCreationResult:
    return AclCreationResult(error_code=code, error_message=message)


def _delete_changes(
    _body: DeleteAclsRequest, response: DeleteAclsResponse
) -> Iterator[AdminChange]:
    """Return an audit event for each ACL that a filter matched, and for each filter that failed."""
    need = cluster_need(AclOperation.ALTER)
    for found in response.filter_results:
        if found.error_code:
            yield AdminChange((need,), {}, found.error_code)
        for one in found.matching_acls:
            yield AdminChange((need,), {"removed": acl_text(one, one.pattern_type)}, one.error_code)


@dataclass(slots=True, eq=False, repr=False)
class DeleteAcls(Handler):
    """DeleteAcls (31), versions 1-3: deletes the ACLs that match filters, and returns them.

    Without an authorizer the request is refused, as in Kafka.
    """

    api = Api(
        DeleteAclsRequest,
        DeleteAclsResponse,
        Versions(1, 3),
        needs=cluster(AclOperation.ALTER),
        changes=_delete_changes,
        on_error=lambda body, code, message: DeleteAclsResponse(
            filter_results=[_delete_failed(code, message)] * len(body.filters)
        ),
    )

    acls: Acls | None

    async def handle(self, _request: RequestContext, body: DeleteAclsRequest) -> DeleteAclsResponse:
        """Delete the ACLs that match a filter; an invalid filter matches none."""
        acls = require_acls(self.acls)
        too_many(len(body.filters))
        filters = [_filter(each) for each in body.filters]
        valid = [each for each in filters if isinstance(each, AclFilter)]
        found = await acls.matching_all(valid)
        await acls.delete(dict.fromkeys(acl for matching in found for acl in matching))
        remaining = iter(found)
        return DeleteAclsResponse(
            filter_results=[
                _deleted(next(remaining)) if isinstance(each, AclFilter) else each
                for each in filters
            ]
        )


def _filter(asked: DeleteAclsFilter) -> AclFilter | DeleteAclsFilterResult:
    """Return the filter, or the error answer if the filter is invalid."""
    try:
        return acl_filter(asked)
    except OttlaError as error:
        return _delete_failed(error.code, error.message)


def _delete_failed(code: ErrorCode, message: str | None) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(error_code=code, error_message=message)


def _deleted(matching: list[Acl]) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(
        error_message=None, matching_acls=[_matching(acl) for acl in matching]
    )


def _matching(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.pattern.resource_type,
        resource_name=acl.pattern.name,
        pattern_type=acl.pattern.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


@dataclass(slots=True, eq=False, repr=False)
class DescribeAcls(Handler):
    """DescribeAcls (29), versions 1-3: lists the ACLs that match a filter.

    Without an authorizer the request is refused, as in Kafka.
    """

    api = Api(
        DescribeAclsRequest,
        DescribeAclsResponse,
        Versions(1, 3),
        needs=cluster(AclOperation.DESCRIBE),
    )

    acls: Acls | None

    def handle(self, _request: RequestContext, body: DescribeAclsRequest) -> DescribeAclsResponse:
        """Return the ACLs, grouped by pattern."""
        acls = require_acls(self.acls)
        found: dict[ResourcePattern, DescribeAclsResource] = {}
        for acl in acls.matching(acl_filter(body)):
            pattern = acl.pattern
            resource = found.setdefault(
                pattern,
                DescribeAclsResource(
                    resource_type=pattern.resource_type,
                    resource_name=pattern.name,
                    pattern_type=pattern.pattern_type,
                ),
            )
            resource.acls.append(
                AclDescription(
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission,
                )
            )
        return DescribeAclsResponse(error_message=None, resources=list(found.values()))


def acl_filter(asked: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    """Return the filter of a request. Raises OttlaError(INVALID_REQUEST) for an unknown number."""
    try:
        wanted = AclFilter(
            AclResource(asked.resource_type_filter),
            asked.resource_name_filter,
            PatternType(asked.pattern_type_filter),
            asked.principal_filter,
            asked.host_filter,
            AclOperation(asked.operation),
            Permission(asked.permission_type),
        )
    except ValueError as error:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST, f"The ACL filter holds an unknown {error}"
        ) from error
    check_filter(wanted)
    return wanted
