"""IncrementalAlterConfigs (44), versions 0-1: sets, deletes, appends, subtracts (KIP-339)."""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode
from ottla.base.settings.alter import Alteration
from ottla.broker.configs.configs import Configs
from ottla.broker.configs.requests import alter_each
from ottla.broker.requests.handler import Handler, Versions
from ottla.broker.requests.request import RequestContext
from ottla.wire.api import ApiKey
from ottla.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


@dataclass(slots=True, eq=False, repr=False)
class IncrementalAlterConfigs(Handler):
    """Serves IncrementalAlterConfigs."""

    api = ApiKey.INCREMENTAL_ALTER_CONFIGS
    versions = Versions(0, 1)

    configs: Configs

    async def handle(
        self, _request: RequestContext, body: IncrementalAlterConfigsRequest
    ) -> IncrementalAlterConfigsResponse:
        """Alter each resource; each stands for itself, and is altered whole or not at all."""

        async def alter(resource: AlterConfigsResource) -> None:
            await self.configs.alter(
                resource.resource_type,
                resource.resource_name,
                [Alteration(c.name, c.config_operation, c.value) for c in resource.configs],
                validate_only=body.validate_only,
            )

        outcomes = await alter_each(body.resources, alter)
        return IncrementalAlterConfigsResponse(responses=[_response(*each) for each in outcomes])

    @staticmethod
    def on_error(
        body: IncrementalAlterConfigsRequest, code: ErrorCode, message: str | None, _version: int
    ) -> IncrementalAlterConfigsResponse:
        """The error on every resource."""
        return IncrementalAlterConfigsResponse(
            responses=[_response(resource, code, message) for resource in body.resources]
        )


def _response(
    resource: AlterConfigsResource, code: ErrorCode, message: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
