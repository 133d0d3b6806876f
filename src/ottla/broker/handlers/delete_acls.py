"""DeleteAcls (31), versions 1-3: deletes the ACLs that filters mean, and returns them.

Without an authorizer the request is refused, as in Kafka.
"""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.access.acls import Acls, require_acls
from ottla.broker.handlers.describe_acls import acl_filter
from ottla.broker.requests.handler import Handler, Versions
from ottla.broker.requests.request import RequestContext
from ottla.security.acl import Acl
from ottla.wire.api import ApiKey
from ottla.wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


@dataclass(slots=True, eq=False, repr=False)
class DeleteAcls(Handler):
    """Serves DeleteAcls."""

    api = ApiKey.DELETE_ACLS
    versions = Versions(1, 3)

    acls: Acls | None

    async def handle(self, _request: RequestContext, body: DeleteAclsRequest) -> DeleteAclsResponse:
        """Delete what the filters mean; an invalid filter deletes nothing."""
        acls = require_acls(self.acls)
        results: list[DeleteAclsFilterResult] = []
        unwanted: list[Acl] = []
        for each in body.filters:
            try:
                matching = acls.matching(acl_filter(each))
            except OttlaError as error:
                results.append(
                    DeleteAclsFilterResult(error_code=error.code, error_message=error.message)
                )
                continue
            unwanted += matching
            results.append(
                DeleteAclsFilterResult(
                    error_message=None, matching_acls=[_matching(acl) for acl in matching]
                )
            )
        await acls.delete(dict.fromkeys(unwanted))
        return DeleteAclsResponse(filter_results=results)

    @staticmethod
    def on_error(
        body: DeleteAclsRequest, code: ErrorCode, message: str | None, _version: int
    ) -> DeleteAclsResponse:
        """The same error for each filter of the request."""
        result = DeleteAclsFilterResult(error_code=code, error_message=message)
        return DeleteAclsResponse(filter_results=[result] * len(body.filters))


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
