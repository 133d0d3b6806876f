"""DeleteAcls (31), versions 1-3: refused without an authorizer, as in Kafka."""

from ottla.base.errors import ErrorCode
from ottla.broker.requests.handler import Versions
from ottla.broker.requests.no_authorizer import NoAuthorizer
from ottla.wire.api import ApiKey
from ottla.wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


class DeleteAcls(NoAuthorizer):
    """Serves DeleteAcls."""

    __slots__ = ()

    api = ApiKey.DELETE_ACLS
    versions = Versions(1, 3)

    @staticmethod
    def on_error(
        body: DeleteAclsRequest, code: ErrorCode, message: str | None, _version: int
    ) -> DeleteAclsResponse:
        """The same error for each filter of the request."""
        result = DeleteAclsFilterResult(error_code=code, error_message=message)
        return DeleteAclsResponse(filter_results=[result] * len(body.filters))
