"""ApiVersions (18), versions 0-4: lists exactly the APIs and versions that this broker serves.

The dispatcher answers a higher version of this API in version 0 with error 35, as KIP-511 requires.
Clients enable the listed features: level 2 of `transaction.version` means that each transaction has
its own producer epoch (KIP-890), level 1 of `share.version` that there are share groups (KIP-932).
A feature of level 0 is not finalized. Ottla's own APIs are listed only for clients of Ottla, which
they recognize by the client's software name.
"""

import re
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import free
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.metadata.features import SUPPORTED
from ottla.wire.api import FIRST_PRIVATE_KEY
from ottla.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_OWN_CLIENTS = "ottla"
_FEATURES_SINCE = 3
# In earlier versions an answer cannot contain a feature whose lowest level is 0.
_LOWEST_IS_0_SINCE = 4
_SUPPORTED = [
    SupportedFeatureKey(name=name, min_version=levels.least, max_version=levels.most)
    for name, levels in SUPPORTED.items()
]
_SUPPORTED_ABOVE_0 = [feature for feature in _SUPPORTED if feature.min_version > 0]
_CLIENT_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@dataclass(slots=True, eq=False, repr=False)
class ApiVersions(Handler):
    """Serves ApiVersions."""

    api = Api(ApiVersionsRequest, ApiVersionsResponse, Versions(0, 4), needs=free)

    view: ClusterView
    api_ranges: list[ApiVersion]

    def handle(self, request: RequestContext, body: ApiVersionsRequest) -> ApiVersionsResponse:
        """List the ranges of all APIs."""
        if request.version >= 3:
            for name in (body.client_software_name, body.client_software_version):
                if _CLIENT_NAME.fullmatch(name) is None:
                    raise OttlaError(
                        ErrorCode.INVALID_REQUEST,
                        f"{name!r} is no valid name or version of software",
                    )
            request.connection.software = body.client_software_name
            request.connection.software_version = body.client_software_version
        ranges = self.api_ranges
        if not body.client_software_name.lower().startswith(_OWN_CLIENTS):
            ranges = [entry for entry in ranges if entry.api_key < FIRST_PRIVATE_KEY]
        response = ApiVersionsResponse(api_keys=ranges)
        if request.version >= _FEATURES_SINCE:
            image = self.view.image
            response.finalized_features_epoch = image.features_epoch
            response.finalized_features = [
                FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
                for name, level in image.features.items()
                if level > 0
            ]
            knows_lowest_0 = request.version >= _LOWEST_IS_0_SINCE
            response.supported_features = _SUPPORTED if knows_lowest_0 else _SUPPORTED_ABOVE_0
        return response
