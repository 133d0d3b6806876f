"""CreateAcls (30), versions 1-3: refused without an authorizer, as in Kafka."""

from ottla.base.errors import ErrorCode
from ottla.broker.requests.handler import Versions
from ottla.broker.requests.no_authorizer import NoAuthorizer
from ottla.wire.api import ApiKey
from ottla.wire.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


class CreateAcls(NoAuthorizer):
    """Serves CreateAcls."""

    __slots__ = ()

    api = ApiKey.CREATE_ACLS
    versions = Versions(1, 3)

    @staticmethod
    def on_error(
        body: CreateAclsRequest, code: ErrorCode, message: str | None, _version: int
    ) -> CreateAclsResponse:
        """The same error for each ACL of the request."""
        result = AclCreationResult(error_code=code, error_message=message)
        return CreateAclsResponse(results=[result] * len(body.creations))
