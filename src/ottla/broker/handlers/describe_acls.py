"""DescribeAcls (29), versions 1-3: no ACLs without an authorizer, as in Kafka."""

from ottla.base.errors import ErrorCode
from ottla.broker.requests.handler import Versions
from ottla.broker.requests.no_authorizer import NoAuthorizer
from ottla.wire.api import ApiKey
from ottla.wire.messages.describe_acls import (
    DescribeAclsRequest,
    DescribeAclsResponse,
)


class DescribeAcls(NoAuthorizer):
    """Serves DescribeAcls."""

    __slots__ = ()

    api = ApiKey.DESCRIBE_ACLS
    versions = Versions(1, 3)

    @staticmethod
    def on_error(
        _body: DescribeAclsRequest, code: ErrorCode, message: str | None, _version: int
    ) -> DescribeAclsResponse:
        """The error, and no ACLs."""
        return DescribeAclsResponse(error_code=code, error_message=message)
