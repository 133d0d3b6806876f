"""DescribeAcls (29), versions 1-3: lists the ACLs that match a filter.

Without an authorizer the request is refused, as in Kafka.
"""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.access.acls import Acls, require_acls
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import cluster
from ottla.broker.requests.request import RequestContext
from ottla.security.acl import AclFilter, Pattern
from ottla.security.names import AclOperation, AclResource, PatternType, Permission
from ottla.wire.messages.acls import (
    AclDescription,
    DeleteAclsFilter,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


@dataclass(slots=True, eq=False, repr=False)
class DescribeAcls(Handler):
    """Serves DescribeAcls."""

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
        found: dict[Pattern, DescribeAclsResource] = {}
        for acl in acls.matching(acl_filter(body)):
            pattern = acl.pattern
            resource = found.setdefault(
                pattern,
                DescribeAclsResource(
                    resource_type=pattern.type,
                    resource_name=pattern.name,
                    pattern_type=pattern.kind,
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
    """Return the filter of a request. Raises OttlaError(INVALID_REQUEST) if a number is unknown."""
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
    wanted.check()
    return wanted
