"""ApiVersions (18), versions 0-4: what this broker serves, and nothing it does not.

A version from the future is answered by the dispatcher, in version 0 with error 35, as KIP-511
asks. No features are advertised: clients switch on what they see.
"""

import re
from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.handler import Handler
from ottla.broker.request import RequestContext
from ottla.wire.api import ApiKey
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_CLIENT_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(
    broker: "Broker", request: RequestContext, body: ApiVersionsRequest
) -> ApiVersionsResponse:
    """List the ranges of all APIs."""
    if request.version >= 3:
        for name in (body.client_software_name, body.client_software_version):
            if _CLIENT_NAME.fullmatch(name) is None:
                raise OttlaError(
                    ErrorCode.INVALID_REQUEST, f"{name!r} is no valid name or version of software"
                )
    return ApiVersionsResponse(api_keys=broker.api_ranges)


def on_error(
    _body: ApiVersionsRequest, code: ErrorCode, _message: str | None, _version: int
) -> ApiVersionsResponse:
    """The error alone: no ranges."""
    return ApiVersionsResponse(error_code=code)


HANDLER = Handler(ApiKey.API_VERSIONS, 0, 4, handle)
