"""ListConfigResources (74), versions 0-1: lists the resources that have settings (KIP-1142).

Version 0 lists only subscriptions to client metrics.
"""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.configs.configs import Configs, ResourceType
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import cluster
from ottla.broker.requests.request import RequestContext
from ottla.security.names import AclOperation
from ottla.wire.messages.configs import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_LISTED = (
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.BROKER_LOGGER,
    ResourceType.CLIENT_METRICS,
    ResourceType.GROUP,
)


@dataclass(slots=True, eq=False, repr=False)
class ListConfigResources(Handler):
    """Serves ListConfigResources."""

    api = Api(
        ListConfigResourcesRequest,
        ListConfigResourcesResponse,
        Versions(0, 1),
        needs=cluster(AclOperation.DESCRIBE_CONFIGS),
    )

    configs: Configs

    def handle(
        self, request: RequestContext, body: ListConfigResourcesRequest
    ) -> ListConfigResourcesResponse:
        """List the resources of the requested types, or of all."""
        strange = [kind for kind in body.resource_types if kind not in _LISTED]
        if strange:
            raise OttlaError(
                ErrorCode.UNSUPPORTED_VERSION, f"resource type {strange[0]} cannot be listed"
            )
        kinds = body.resource_types or list(_LISTED)
        if request.version == 0:
            kinds = [ResourceType.CLIENT_METRICS]
        return ListConfigResourcesResponse(
            config_resources=[
                ConfigResource(resource_name=name, resource_type=kind)
                for kind, name in self.configs.resources(kinds)
            ]
        )
