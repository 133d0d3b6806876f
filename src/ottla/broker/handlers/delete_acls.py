"""DeleteAcls (31), versions 1-3: deletes the ACLs that match filters, and returns them.

Without an authorizer the request is refused, as in Kafka.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.access.acls import Acls, require_acls, too_many
from ottla.broker.audit.details import acl_text
from ottla.broker.handlers.describe_acls import acl_filter
from ottla.broker.requests.auditing import AdminChange, cluster_need
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import cluster
from ottla.broker.requests.request import RequestContext
from ottla.security.acl import Acl, AclFilter
from ottla.security.names import AclOperation
from ottla.wire.messages.acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


def _changes(_body: DeleteAclsRequest, response: DeleteAclsResponse) -> Iterator[AdminChange]:
    """Return an audit line for each ACL that a filter matched, and for each filter that failed."""
    need = cluster_need(AclOperation.ALTER)
    for found in response.filter_results:
        if found.error_code:
            yield AdminChange((need,), {}, found.error_code)
        for one in found.matching_acls:
            yield AdminChange((need,), {"removed": acl_text(one, one.pattern_type)}, one.error_code)


@dataclass(slots=True, eq=False, repr=False)
class DeleteAcls(Handler):
    """Serves DeleteAcls."""

    api = Api(
        DeleteAclsRequest,
        DeleteAclsResponse,
        Versions(1, 3),
        needs=cluster(AclOperation.ALTER),
        changes=_changes,
        on_error=lambda body, code, message: DeleteAclsResponse(
            filter_results=[_failed(code, message)] * len(body.filters)
        ),
    )

    acls: Acls | None

    async def handle(self, _request: RequestContext, body: DeleteAclsRequest) -> DeleteAclsResponse:
        """Delete the matching ACLs; an invalid filter deletes nothing."""
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
    """Return the filter; for an invalid one, the answer to it."""
    try:
        return acl_filter(asked)
    except OttlaError as error:
        return _failed(error.code, error.message)


def _failed(code: ErrorCode, message: str | None) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(error_code=code, error_message=message)


def _deleted(matching: list[Acl]) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(
        error_message=None, matching_acls=[_matching(acl) for acl in matching]
    )


def _matching(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.pattern.type,
        resource_name=acl.pattern.name,
        pattern_type=acl.pattern.kind,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )
